package work

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
)

// account is a row of the workloads of indexes.
type account struct {
	ID    int64 `oribi:"id,key"`
	Email string
	V     int64
}

const byEmail = "by_email"

// accountOf returns row i. Emails are unique and in another order than the keys.
func accountOf(i int) account {
	return account{int64(i), fmt.Sprintf("%08x.%07d@example.org", uint32(i)*2654435761, i), int64(i) * 7}
}

// accountStore is a table of accounts.
type accountStore interface {
	insert(rows []account) error // commits them, not synced
	get(a account) (account, error)
	Close() error
}

// indexes are inserts into a table with an index, and reads by it.
func indexes() []harness.Workload {
	get := harness.Workload{
		Name: "index-get",
		About: "read of a row of three columns by a unique string, of a million in memory, in random order; " +
			"oribi-key reads by the key",
		Unit: "µs", Fresh: true, MemoryLimit: peakLimit,
		Floors: []harness.Floor{{Peer: "oribi", Against: "sqlite", Ratio: 0.5},
			{Peer: "oribi", Against: "oribi-key", Ratio: 2}},
	}
	insert := harness.Workload{
		Name: "index-insert",
		About: "insert of rows of three columns, of which a string has a unique index, in key order in batches of 1,000, " +
			"not synced; oribi-plain has no index",
		Unit: "rows/s", More: true, Fresh: true, MemoryLimit: peakLimit,
		Floors: []harness.Floor{{Peer: "oribi", Against: "sqlite", Ratio: 1.5, Least: true},
			{Peer: "oribi", Against: "oribi-plain", Ratio: 0.6, Least: true}},
	}
	open := func(index, byKey bool) func(env *harness.Env) (accountStore, error) {
		return func(env *harness.Env) (accountStore, error) { return openOribiAccounts(env, index, byKey) }
	}
	get.Peers = []harness.Peer{
		{Name: "oribi", Ours: true, Measure: measureAccountGets(open(true, false))},
		{Name: "oribi-key", Ours: true, Aside: true, Measure: measureAccountGets(open(true, true))},
		{Name: "sqlite", Measure: measureAccountGets(openSQLiteAccounts)},
	}
	insert.Peers = []harness.Peer{
		{Name: "oribi", Ours: true, Measure: measureAccountInserts(open(true, false))},
		{Name: "oribi-plain", Ours: true, Aside: true, Measure: measureAccountInserts(open(false, false))},
		{Name: "sqlite", Measure: measureAccountInserts(openSQLiteAccounts)},
	}
	return []harness.Workload{get, insert}
}

func insertAccounts(s accountStore, n int) error {
	rows := make([]account, 0, batchRows)
	for i := 0; i < n; {
		rows = rows[:0]
		for ; i < n && len(rows) < batchRows; i++ {
			rows = append(rows, accountOf(i))
		}
		if err := s.insert(rows); err != nil {
			return err
		}
	}
	return nil
}

func measureAccountInserts(
	open func(env *harness.Env) (accountStore, error),
) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		s, err := open(env)
		if err != nil {
			return m, err
		}
		took, err := env.Clock(func() error { return insertAccounts(s, env.Scale.Table) })
		m.Value = float64(env.Scale.Table) / took.Seconds()
		return m, closeAll(err, s)
	}
}

func measureAccountGets(
	open func(env *harness.Env) (accountStore, error),
) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		s, err := open(env)
		if err != nil {
			return m, err
		}
		n := env.Scale.Table
		if err := insertAccounts(s, n); err != nil {
			return m, closeAll(err, s)
		}
		rng, sum := rand.New(rand.NewPCG(1, 1)), uint64(0)
		read := func() error {
			for range env.Scale.Gets {
				want := accountOf(rng.IntN(n))
				got, err := s.get(want)
				if err != nil {
					return err
				}
				sum += uint64(got.ID*3 + got.V)
			}
			return nil
		}
		if err = read(); err == nil { // fills the caches
			_, err = env.Clock(read)
		}
		m.Value, m.Checksum = env.CPU()*1e6/float64(env.Scale.Gets), fmt.Sprint(sum)
		return m, closeAll(err, s)
	}
}

type oribiAccounts struct {
	store *oribi.Store
	table *oribi.TableOf[account]
	byKey bool
}

func openOribiAccounts(env *harness.Env, index, byKey bool) (accountStore, error) {
	store, err := oribi.Open(env.Path(storeDir), &oribi.Options{MemoryLimit: storeMemory})
	if err != nil {
		return nil, err
	}
	var opts []oribi.OpenOption
	if index {
		opts = append(opts, oribi.Unique(byEmail, "email"))
	}
	t, err := oribi.OpenTable[account](store, "accounts", opts...)
	if err != nil {
		return nil, closeAll(err, store)
	}
	return &oribiAccounts{store, t, byKey}, nil
}

func (s *oribiAccounts) insert(rows []account) error {
	b := s.store.NewBatch()
	s.table.InBatch(b).Insert(rows...)
	_, err := b.Commit(context.Background(), oribi.NoSync)
	return err
}

func (s *oribiAccounts) get(a account) (account, error) {
	if s.byKey {
		return s.table.Get(context.Background(), a.ID)
	}
	return s.table.GetBy(context.Background(), byEmail, a.Email)
}

func (s *oribiAccounts) Close() error { return s.store.Close() }

type sqliteAccounts struct {
	*sql.DB
	insertRow, byEmail *sql.Stmt
}

func openSQLiteAccounts(env *harness.Env) (accountStore, error) {
	db, err := peer.OpenSQLite(env.Dir, "CREATE TABLE accounts (id INTEGER PRIMARY KEY, email TEXT, v INTEGER)",
		"CREATE UNIQUE INDEX by_email ON accounts (email)")
	if err != nil {
		return nil, err
	}
	s := &sqliteAccounts{DB: db}
	if s.insertRow, err = db.Prepare("INSERT INTO accounts VALUES (?, ?, ?)"); err == nil {
		s.byEmail, err = db.Prepare("SELECT id, email, v FROM accounts WHERE email = ?")
	}
	if err != nil {
		return nil, closeAll(err, db)
	}
	return s, nil
}

func (s *sqliteAccounts) insert(rows []account) error {
	tx, err := s.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert := tx.Stmt(s.insertRow)
	for _, a := range rows {
		if _, err := insert.Exec(a.ID, a.Email, a.V); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *sqliteAccounts) get(a account) (got account, err error) {
	err = s.byEmail.QueryRow(a.Email).Scan(&got.ID, &got.Email, &got.V)
	return got, err
}
