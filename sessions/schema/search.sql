-- The full-text index. Derived data: made again at any time from `messages`, and never needed to keep a word.
-- Apart from the numbered migrations, because a SQLite without FTS5 must still open the store.
-- Talk and tool rows are indexed apart, so that tool noise costs the search for talk nothing.
-- External content over coalesce(search_text, content): deletes and rebuilds are plain SQL that any SQLite can run.

CREATE VIEW IF NOT EXISTS searchable_talk AS
    SELECT id, coalesce(search_text, content) AS content FROM messages WHERE kind = 'talk';
CREATE VIEW IF NOT EXISTS searchable_tool AS
    SELECT id, coalesce(search_text, content) AS content FROM messages WHERE kind = 'tool';

CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5 (
    content, content = 'searchable_talk', content_rowid = 'id', tokenize = "unicode61 remove_diacritics 2"
);
CREATE VIRTUAL TABLE IF NOT EXISTS tools_fts USING fts5 (
    content, content = 'searchable_tool', content_rowid = 'id', tokenize = "unicode61 remove_diacritics 2"
);

-- A row that nobody has marked as indexed (another program's insert) is caught here, so that none escapes.
CREATE TRIGGER IF NOT EXISTS messages_talk_in AFTER INSERT ON messages WHEN NEW.indexed = 0 AND NEW.kind = 'talk' BEGIN
    INSERT INTO messages_fts (rowid, content) VALUES (NEW.id, coalesce(NEW.search_text, NEW.content));
END;
CREATE TRIGGER IF NOT EXISTS messages_tool_in AFTER INSERT ON messages WHEN NEW.indexed = 0 AND NEW.kind = 'tool' BEGIN
    INSERT INTO tools_fts (rowid, content) VALUES (NEW.id, coalesce(NEW.search_text, NEW.content));
END;
CREATE TRIGGER IF NOT EXISTS messages_talk_out AFTER DELETE ON messages WHEN OLD.kind = 'talk' BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, content) VALUES ('delete', OLD.id, coalesce(OLD.search_text, OLD.content));
END;
CREATE TRIGGER IF NOT EXISTS messages_tool_out AFTER DELETE ON messages WHEN OLD.kind = 'tool' BEGIN
    INSERT INTO tools_fts (tools_fts, rowid, content) VALUES ('delete', OLD.id, coalesce(OLD.search_text, OLD.content));
END;
CREATE TRIGGER IF NOT EXISTS messages_talk_changed AFTER UPDATE OF content, search_text ON messages WHEN OLD.kind = 'talk' BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, content) VALUES ('delete', OLD.id, coalesce(OLD.search_text, OLD.content));
    INSERT INTO messages_fts (rowid, content) VALUES (NEW.id, coalesce(NEW.search_text, NEW.content));
END;
CREATE TRIGGER IF NOT EXISTS messages_tool_changed AFTER UPDATE OF content, search_text ON messages WHEN OLD.kind = 'tool' BEGIN
    INSERT INTO tools_fts (tools_fts, rowid, content) VALUES ('delete', OLD.id, coalesce(OLD.search_text, OLD.content));
    INSERT INTO tools_fts (rowid, content) VALUES (NEW.id, coalesce(NEW.search_text, NEW.content));
END;
