package peer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/oribi-db/oribi/bench/inputs"
)

// Columns of lineitem in SQL, in schema order. Decimals are integers of hundredths, dates are days
// since 1970-01-01, so that all peers do the same arithmetic.
var sqlColumns = []string{"l_orderkey BIGINT", "l_linenumber INTEGER", "l_partkey BIGINT",
	"l_suppkey BIGINT", "l_quantity BIGINT",
	"l_extendedprice BIGINT", "l_discount BIGINT", "l_tax BIGINT", "l_returnflag VARCHAR",
	"l_linestatus VARCHAR", "l_shipdate INTEGER",
	"l_commitdate INTEGER", "l_receiptdate INTEGER", "l_shipinstruct VARCHAR",
	"l_shipmode VARCHAR", "l_comment VARCHAR"}

// columnNames returns the columns of lineitem in schema order.
func columnNames() (names []string) {
	for _, c := range sqlColumns {
		name, _, _ := strings.Cut(c, " ")
		names = append(names, name)
	}
	return names
}

// SQLTable returns the statement that creates lineitem. tail is the end that a dialect adds.
func SQLTable(tail string) string {
	return "CREATE TABLE IF NOT EXISTS lineitem (" + strings.Join(sqlColumns, " NOT NULL, ") +
		" NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber))" + tail
}

// SQLValues returns the values of a row in schema order.
func SQLValues(dst []any, it *inputs.Item) []any {
	return append(dst, it.OrderKey, it.LineNumber, it.PartKey, it.SuppKey, it.Quantity,
		it.ExtendedPrice, it.Discount, it.Tax,
		it.ReturnFlag, it.LineStatus, it.ShipDate, it.CommitDate, it.ReceiptDate,
		it.ShipInstruct, it.ShipMode, it.Comment)
}

func sqlTargets(it *inputs.Item) []any {
	return []any{&it.OrderKey, &it.LineNumber, &it.PartKey, &it.SuppKey, &it.Quantity,
		&it.ExtendedPrice, &it.Discount, &it.Tax,
		&it.ReturnFlag, &it.LineStatus, &it.ShipDate, &it.CommitDate, &it.ReceiptDate,
		&it.ShipInstruct, &it.ShipMode, &it.Comment}
}

// SQL is lineitem in an SQL database, accessed through one connection with prepared statements.
type SQL struct {
	db    *sql.DB
	Conn  *sql.Conn
	stmts map[string]*sql.Stmt
	// FinishWith contains the statements that FinishWork executes.
	FinishWith []string
	// LoadWith, UpsertWith and UpdateWith replace Load, Upsert and UpdateTax in databases that have
	// a better method than one statement per row.
	LoadWith   func(rows iter.Seq2[*inputs.Item, error]) error
	UpsertWith func(items []inputs.Item) error
	UpdateWith func(keys []inputs.Key, tax int64) error
}

// OpenSQL takes over a database and creates lineitem if it does not exist, after executing the
// statements in first.
func OpenSQL(db *sql.DB, tail string, first ...string) (*SQL, error) {
	conn, err := db.Conn(context.Background())
	if err != nil {
		db.Close()
		return nil, err
	}
	s := &SQL{db: db, Conn: conn, stmts: map[string]*sql.Stmt{}}
	for _, q := range append(first, SQLTable(tail)) {
		if _, err := conn.ExecContext(context.Background(), q); err != nil {
			s.Close()
			return nil, fmt.Errorf("%s: %w", q, err)
		}
	}
	return s, nil
}

// Close closes the statements, the connection and the database.
func (s *SQL) Close() error {
	var errs []error
	for _, st := range s.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, s.Conn.Close(), s.db.Close())...)
}

func (s *SQL) stmt(q string) (*sql.Stmt, error) {
	if st := s.stmts[q]; st != nil {
		return st, nil
	}
	st, err := s.Conn.PrepareContext(context.Background(), q)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q, err)
	}
	s.stmts[q] = st
	return st, nil
}

// together runs do in a transaction.
func (s *SQL) together(do func() error) error {
	if _, err := s.Conn.ExecContext(context.Background(), "BEGIN"); err != nil {
		return err
	}
	if err := do(); err != nil {
		s.Conn.ExecContext(context.Background(), "ROLLBACK")
		return err
	}
	_, err := s.Conn.ExecContext(context.Background(), "COMMIT")
	return err
}

func (s *SQL) exec(q string, args ...any) error {
	st, err := s.stmt(q)
	if err == nil {
		_, err = st.Exec(args...)
	}
	return err
}

// Load inserts a thousand rows per transaction, unless LoadWith is set.
func (s *SQL) Load(rows iter.Seq2[*inputs.Item, error], _ bool) error {
	if s.LoadWith != nil {
		return s.LoadWith(rows)
	}
	return s.write("INSERT INTO", rows)
}

func (s *SQL) write(verb string, rows iter.Seq2[*inputs.Item, error]) error {
	q := verb + " lineitem VALUES (?" + strings.Repeat(", ?", len(sqlColumns)-1) + ")"
	var args []any
	return EachChunk(rows, Chunk, func(items []inputs.Item) error {
		return s.together(func() error {
			for i := range items {
				args = SQLValues(args[:0], &items[i])
				if err := s.exec(q, args...); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Upsert uses INSERT OR REPLACE.
func (s *SQL) Upsert(items []inputs.Item) error {
	if s.UpsertWith != nil {
		return s.UpsertWith(items)
	}
	return s.write("INSERT OR REPLACE INTO", func(yield func(*inputs.Item, error) bool) {
		for i := range items {
			if !yield(&items[i], nil) {
				return
			}
		}
	})
}

func (s *SQL) UpdateTax(keys []inputs.Key, tax int64) error {
	if s.UpdateWith != nil {
		return s.UpdateWith(keys, tax)
	}
	return s.together(func() error {
		for _, k := range keys {
			if err := s.exec("UPDATE lineitem SET l_tax = ? WHERE l_orderkey = ? AND l_linenumber = ?", tax,
				k.OrderKey, k.LineNumber); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *SQL) Get(key inputs.Key, it *inputs.Item) (bool, error) {
	st, err := s.stmt("SELECT * FROM lineitem WHERE l_orderkey = ? AND l_linenumber = ?")
	if err != nil {
		return false, err
	}
	err = st.QueryRow(key.OrderKey, key.LineNumber).Scan(sqlTargets(it)...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// GetMany reads all keys with one statement.
func (s *SQL) GetMany(keys []inputs.Key, use func(it *inputs.Item)) error {
	st, err := s.stmt("SELECT * FROM lineitem WHERE (l_orderkey, l_linenumber) IN (VALUES (?, ?)" +
		strings.Repeat(", (?, ?)", len(keys)-1) + ")")
	if err != nil {
		return err
	}
	args := make([]any, 0, 2*len(keys))
	for _, k := range keys {
		args = append(args, k.OrderKey, k.LineNumber)
	}
	return s.rows(st, use, args...)
}

func (s *SQL) Range(from inputs.Key, n int, use func(it *inputs.Item)) error {
	// A comparison of row values would be shorter, but DuckDB does not derive a bound on the first
	// column from it.
	st, err := s.stmt("SELECT * FROM lineitem WHERE l_orderkey >= ? AND (l_orderkey > ? OR l_linenumber >= ?) ORDER " +
		"BY l_orderkey, l_linenumber LIMIT ?")
	if err != nil {
		return err
	}
	return s.rows(st, use, from.OrderKey, from.OrderKey, from.LineNumber, n)
}

func (s *SQL) rows(st *sql.Stmt, use func(it *inputs.Item), args ...any) error {
	rows, err := st.Query(args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var it inputs.Item
	targets := sqlTargets(&it)
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		use(&it)
	}
	return rows.Err()
}

// Query executes the query in the database.
func (s *SQL) Query(q Question) (*Answer, error) {
	text, keys := q.SQL()
	st, err := s.stmt(text)
	if err != nil {
		return nil, err
	}
	rows, err := st.Query()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	a := &Answer{}
	for rows.Next() {
		texts, sums := make([]string, keys), make([]sql.NullInt64, len(names)-keys)
		var targets []any
		for i := range texts {
			targets = append(targets, &texts[i])
		}
		for i := range sums {
			targets = append(targets, &sums[i])
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		g := a.Group(strings.Join(texts, ""))
		for i := range sums {
			g[i] = sums[i].Int64
		}
	}
	return a, rows.Err()
}

func (s *SQL) FinishWork() error { return s.Do(s.FinishWith...) }

// Do executes statements.
func (s *SQL) Do(statements ...string) error {
	for _, q := range statements {
		if _, err := s.Conn.ExecContext(context.Background(), q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return nil
}
