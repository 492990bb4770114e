-- Answers that are shown while they are written, chats that go on under another id, places in what is read.

-- The platform's id of the message that grows while the answer is written; finishing edits it.
ALTER TABLE outbox ADD COLUMN live_id TEXT;

CREATE TABLE aliases (
    platform         TEXT NOT NULL,
    chat_id          TEXT NOT NULL,
    goes_on_as       TEXT NOT NULL,               -- always the newest id: a chain is shortened when it grows
    at               REAL NOT NULL,
    PRIMARY KEY (platform, chat_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE bookmarks (
    platform         TEXT NOT NULL,
    name             TEXT NOT NULL,
    value            TEXT NOT NULL,
    at               REAL NOT NULL,
    PRIMARY KEY (platform, name)
) STRICT, WITHOUT ROWID;
