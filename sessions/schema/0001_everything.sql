-- The whole schema. Later migrations append; this file never changes once it has shipped.
-- Times are seconds since the epoch. JSON columns hold text that only their writers read.

CREATE TABLE conversations (
    id               TEXT PRIMARY KEY,            -- the id of its first session
    tip              TEXT NOT NULL,               -- the live session; moved in the transaction that makes a child
    predecessor      TEXT,                        -- the conversation that a reset ended in favour of this one
    goal             TEXT,
    model_override   TEXT,
    pins             TEXT,
    archived         INTEGER NOT NULL DEFAULT 0,
    cooldowns        TEXT                         -- JSON: what failed, and until when it is not tried again
) STRICT;

CREATE TABLE sessions (
    id               TEXT PRIMARY KEY,
    conversation     TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    parent           TEXT,
    link             TEXT CHECK (link IN ('compression', 'branch', 'delegate', 'reset')),
    source           TEXT NOT NULL,
    key              TEXT,
    user_id          TEXT,
    chat_id          TEXT,
    chat_kind        TEXT,
    thread_id        TEXT,
    title            TEXT,
    title_by_person  INTEGER NOT NULL DEFAULT 0,
    model            TEXT,
    provider         TEXT,
    model_config     TEXT,
    system_prompt    TEXT,
    tools            TEXT,
    input_tokens     INTEGER NOT NULL DEFAULT 0,
    output_tokens    INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd         REAL NOT NULL DEFAULT 0,
    api_calls        INTEGER NOT NULL DEFAULT 0,
    message_count    INTEGER NOT NULL DEFAULT 0,
    tool_call_count  INTEGER NOT NULL DEFAULT 0,
    preview          TEXT NOT NULL DEFAULT '',
    cwd              TEXT,
    git_branch       TEXT,
    started_at       REAL NOT NULL,
    last_active      REAL NOT NULL,
    ended_at         REAL,
    end_reason       TEXT,
    CHECK ((parent IS NULL) = (link IS NULL))
) STRICT;
CREATE UNIQUE INDEX sessions_title ON sessions (title) WHERE title IS NOT NULL;
CREATE INDEX sessions_conversation ON sessions (conversation);
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_recent ON sessions (last_active DESC);
CREATE INDEX sessions_source ON sessions (source, last_active DESC);

CREATE TABLE messages (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id       TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn             TEXT,
    role             TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    kind             TEXT NOT NULL CHECK (kind IN ('talk', 'tool', 'summary', 'carried')),
    content          TEXT NOT NULL,
    tool_calls       TEXT,
    tool_call_id     TEXT,
    tool_name        TEXT,
    tokens           INTEGER,
    finish_reason    TEXT,
    at               REAL NOT NULL,
    sender_id        TEXT,
    sender_name      TEXT,
    platform_message_ids TEXT,
    undone_by        INTEGER,
    search_text      TEXT,                        -- only where the content itself is not what the index should see
    indexed          INTEGER NOT NULL DEFAULT 0   -- 1: whoever inserted the row fed the index in the same transaction
) STRICT;
CREATE INDEX messages_session ON messages (session_id, id);
CREATE INDEX messages_turn ON messages (turn) WHERE turn IS NOT NULL;

-- What a session shows of its ancestors (and of itself, once it was pruned): see sessions/store.py, history().
CREATE TABLE views (
    session_id       TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    position         INTEGER NOT NULL,
    message_id       INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    replacement      TEXT,
    PRIMARY KEY (session_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX views_message ON views (message_id);

CREATE TABLE routes (
    key              TEXT PRIMARY KEY,
    conversation     TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    origin           TEXT NOT NULL,
    updated_at       REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX routes_conversation ON routes (conversation, updated_at);

CREATE TABLE homes (
    platform         TEXT PRIMARY KEY,
    origin           TEXT NOT NULL,
    set_by           TEXT NOT NULL,
    at               REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    conversation     TEXT PRIMARY KEY,
    owner            TEXT,                        -- NULL: free; the row stays, so that generations only grow
    place            TEXT NOT NULL,
    generation       INTEGER NOT NULL,
    expires_at       REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE turns (
    id               TEXT PRIMARY KEY,
    key              TEXT NOT NULL,
    session_id       TEXT NOT NULL,
    started_at       REAL NOT NULL,
    ended_at         REAL,
    ending           TEXT,
    fruitless        INTEGER NOT NULL DEFAULT 0,  -- starts in a row that added no row
    rows_at_start    INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX turns_open ON turns (key) WHERE ended_at IS NULL;

CREATE TABLE inbox (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    platform         TEXT NOT NULL,
    chat_id          TEXT NOT NULL,
    event_id         TEXT NOT NULL,
    key              TEXT NOT NULL,
    origin           TEXT NOT NULL,
    payload          TEXT,                        -- NULL once the outcome is set
    received_at      REAL NOT NULL,
    node             TEXT,
    turn             TEXT,
    outcome          TEXT CHECK (outcome IN ('answered', 'merged', 'command', 'rejected', 'abandoned', 'dead')),
    why              TEXT NOT NULL DEFAULT '',
    settled_at       REAL,
    CHECK ((outcome IS NULL) = (settled_at IS NULL))
) STRICT;
CREATE UNIQUE INDEX inbox_event ON inbox (platform, chat_id, event_id);
CREATE INDEX inbox_open ON inbox (key, id) WHERE outcome IS NULL;
CREATE INDEX inbox_settled ON inbox (settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE outbox (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    key              TEXT NOT NULL UNIQUE,
    platform         TEXT NOT NULL,
    chat_id          TEXT NOT NULL,
    origin           TEXT NOT NULL,
    markdown         TEXT NOT NULL,
    reply_to         TEXT,
    answers          TEXT,
    session_id       TEXT,
    turn             TEXT,
    node             TEXT,
    input_tokens     INTEGER NOT NULL DEFAULT 0,
    output_tokens    INTEGER NOT NULL DEFAULT 0,
    created_at       REAL NOT NULL,
    state            TEXT NOT NULL CHECK (state IN ('streaming', 'due', 'in_flight', 'sent', 'unknown', 'dead')),
    attempts         INTEGER NOT NULL DEFAULT 0,
    not_before       REAL NOT NULL DEFAULT 0,
    message_ids      TEXT NOT NULL DEFAULT '[]',
    why              TEXT NOT NULL DEFAULT '',
    settled_at       REAL
) STRICT;
CREATE INDEX outbox_open ON outbox (platform, chat_id, id) WHERE settled_at IS NULL;
CREATE INDEX outbox_settled ON outbox (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX outbox_turn ON outbox (turn) WHERE turn IS NOT NULL;

CREATE TABLE handoffs (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation     TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    platform         TEXT NOT NULL,
    state            TEXT NOT NULL CHECK (state IN ('pending', 'claimed', 'done', 'failed')),
    claimed_by       TEXT,
    expires_at       REAL,
    why              TEXT NOT NULL DEFAULT '',
    asked_at         REAL NOT NULL,
    ended_at         REAL
) STRICT;

CREATE TABLE pairing_requests (
    platform         TEXT NOT NULL,
    user_id          TEXT NOT NULL,
    name             TEXT NOT NULL,
    code             TEXT NOT NULL,
    asked_at         REAL NOT NULL,
    expires_at       REAL NOT NULL,
    PRIMARY KEY (platform, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE pairing_tries (
    platform         TEXT PRIMARY KEY,
    wrong            INTEGER NOT NULL,
    locked_until     REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE roles (
    platform         TEXT NOT NULL,
    user_id          TEXT NOT NULL,
    role             TEXT NOT NULL CHECK (role IN ('guest', 'trusted', 'owner')),
    granted_at       REAL NOT NULL,
    PRIMARY KEY (platform, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE approvals (
    id               TEXT PRIMARY KEY,
    conversation     TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    asked_by         TEXT NOT NULL,
    command          TEXT NOT NULL,
    state            TEXT NOT NULL CHECK (state IN ('waiting', 'granted', 'denied', 'expired')),
    reach            TEXT NOT NULL DEFAULT 'once' CHECK (reach IN ('once', 'session', 'always')),
    asked_at         REAL NOT NULL,
    expires_at       REAL NOT NULL
) STRICT;

CREATE TABLE jobs (
    name             TEXT PRIMARY KEY,
    payload          TEXT,
    due_at           REAL,
    ran_at           REAL
) STRICT, WITHOUT ROWID;

-- Books that would cost a scan: outcomes of rows that are removed after the time a platform may redeliver.
CREATE TABLE counters (
    name             TEXT PRIMARY KEY,
    value            INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE index_todo (
    message_id       INTEGER PRIMARY KEY
) STRICT;
