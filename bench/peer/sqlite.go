package peer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// SQLite is SQLite without cgo: write-ahead log, tables without a row ID, so that rows are stored
// in key order.
var SQLite = Driver{Name: "sqlite", Can: Load | Sorted | Write | Point | Query | KV,
	Lineitem: openSQLite, Records: openSQLiteRecords}

// sqliteFirst returns the statements that set durability and cache size. Without sync, a commit
// leaves the log in the page cache.
func sqliteFirst(sync bool) []string {
	level := "OFF"
	if sync {
		level = "FULL"
	}
	return []string{"PRAGMA journal_mode = WAL", "PRAGMA synchronous = " + level,
		fmt.Sprintf("PRAGMA cache_size = -%d", CacheBytes>>10)}
}

const sqliteCheckpoint = "PRAGMA wal_checkpoint(TRUNCATE)"

func sqliteDB(dir string) (*sql.DB, error) {
	return sql.Open("sqlite", filepath.Join(dir, "sqlite.db"))
}

// OpenSQLite opens a database without sync, after executing the statements. It has one connection.
func OpenSQLite(dir string, statements ...string) (*sql.DB, error) {
	db, err := sqliteDB(dir)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, q := range append(sqliteFirst(false), statements...) {
		if _, err := db.Exec(q); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", q, err), db.Close())
		}
	}
	return db, nil
}

func openSQLite(dir string) (Lineitem, error) {
	db, err := sqliteDB(dir)
	if err != nil {
		return nil, err
	}
	s, err := OpenSQL(db, " WITHOUT ROWID", sqliteFirst(false)...)
	if err != nil {
		return nil, err
	}
	s.FinishWith = []string{sqliteCheckpoint}
	return &sqliteLineitem{s}, nil
}

type sqliteLineitem struct{ *SQL }

// Close checkpoints with syncing on, so that everything is durable.
func (s *sqliteLineitem) Close() error { return closeSQLite(s.SQL) }

func closeSQLite(s *SQL) error {
	_, err := s.Conn.ExecContext(context.Background(), "PRAGMA synchronous = FULL")
	if err == nil {
		err = s.FinishWork()
	}
	return errors.Join(err, s.Close())
}

// sqliteRecords is a table with the key and ten columns.
type sqliteRecords struct {
	*SQL
	value []byte
}

func openSQLiteRecords(dir string, sync bool) (Records, error) {
	db, err := sqliteDB(dir)
	if err != nil {
		return nil, err
	}
	var columns strings.Builder
	for i := range Fields {
		fmt.Fprintf(&columns, ", f%d BLOB", i)
	}
	s, err := OpenSQL(db, " WITHOUT ROWID",
		append(sqliteFirst(sync), "CREATE TABLE IF NOT EXISTS records (k BLOB PRIMARY KEY"+
			columns.String()+") WITHOUT ROWID")...)
	if err != nil {
		return nil, err
	}
	s.FinishWith = []string{sqliteCheckpoint}
	return &sqliteRecords{SQL: s}, nil
}

func (r *sqliteRecords) Close() error { return closeSQLite(r.SQL) }

var sqlitePut = "INSERT OR REPLACE INTO records VALUES (?" + strings.Repeat(", ?", Fields) + ")"

func (r *sqliteRecords) Put(keys, values [][]byte) error {
	put := func(i int) error {
		args := []any{keys[i]}
		for from := 0; from < Fields*FieldBytes; from += FieldBytes {
			// a shorter record has fewer fields
			field := values[i][min(from, len(values[i])):min(from+FieldBytes, len(values[i]))]
			args = append(args, field)
		}
		return r.exec(sqlitePut, args...)
	}
	if len(keys) == 1 {
		return put(0)
	}
	return r.together(func() error {
		for i := range keys {
			if err := put(i); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *sqliteRecords) Read(key []byte) ([]byte, error) {
	st, err := r.stmt("SELECT * FROM records WHERE k = ?")
	if err != nil {
		return nil, err
	}
	var found []byte
	err = r.each(st, func(_, value []byte) { found = value }, key)
	return found, err
}

// each reads rows of all columns. The value's memory is reused for the next one.
func (r *sqliteRecords) each(st *sql.Stmt, use func(key, value []byte), args ...any) error {
	rows, err := st.Query(args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var raw [1 + Fields]sql.RawBytes
	targets := make([]any, len(raw))
	for i := range raw {
		targets[i] = &raw[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		r.value = r.value[:0]
		for _, f := range raw[1:] {
			r.value = append(r.value, f...)
		}
		use(raw[0], r.value)
	}
	return rows.Err()
}

func (r *sqliteRecords) Update(key []byte, field int, value []byte) error {
	return r.exec(fmt.Sprintf("UPDATE records SET f%d = ? WHERE k = ?", field), value, key)
}

func (r *sqliteRecords) Scan(from []byte, n int, use func(key, value []byte)) error {
	st, err := r.stmt("SELECT * FROM records WHERE k >= ? ORDER BY k LIMIT ?")
	if err != nil {
		return err
	}
	return r.each(st, use, from, n)
}
