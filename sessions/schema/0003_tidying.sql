-- Conversations that are being taken away in steps, and what was brought in from elsewhere.

-- Hidden from every reader in the transaction that dooms them; their rows go in small chunks after it.
CREATE TABLE doomed (
    conversation     TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- So that the same log brings nothing twice, also when it has grown.
CREATE TABLE imports (
    origin           TEXT NOT NULL,               -- which program kept it
    foreign_id       TEXT NOT NULL,               -- its name there
    conversation     TEXT NOT NULL,
    at               REAL NOT NULL,
    PRIMARY KEY (origin, foreign_id)
) STRICT, WITHOUT ROWID;
