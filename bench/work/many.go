package work

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2"
	bolt "go.etcd.io/bbolt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/schema"
)

// manyRows is the number of rows of each of many tables.
const manyRows = 40

// manyTables creates 2,000 tables at full scale, writes rows to each, makes all durable in files, reads
// all rows, and drops the tables.
func manyTables() harness.Workload {
	return harness.Workload{
		Name: "many-tables",
		About: "create tables, all or none; write 40 rows of 8 and 80 bytes to each in a write batch of its own, not " +
			"synced; flush; read all; drop, all or none",
		Unit: "µs/table", Fresh: true, MemoryLimit: peakLimit,
		Peers: []harness.Peer{
			{Name: "oribi", Ours: true, Measure: measureMany(oribiMany)},
			{Name: "bbolt", Measure: measureMany(bboltMany)},
			{Name: "pebble", Measure: measureMany(pebbleMany)},
		},
		Floors: []harness.Floor{
			{Peer: "oribi", Figure: 2000},
			{Peer: "oribi", Metric: "flush", Figure: 1000},
		},
	}
}

// manyStore is a store of tables with numbers below n.
type manyStore interface {
	io.Closer
	create(n int) error
	put(table int, text []byte) error // the rows with the keys below manyRows, each with text
	flush() error
	sum() (rows, keys, bytes int64, err error) // over all tables
	drop() error
}

func measureMany(
	open func(env *harness.Env) (manyStore, error),
) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		s, err := open(env)
		if err != nil {
			return m, err
		}
		n := max(100, env.Scale.Inserts/500)
		m.Metrics = map[string]float64{}
		total := time.Duration(0)
		for _, step := range []struct {
			name string
			do   func() error
		}{
			{"create", func() error { return s.create(n) }},
			{"put", func() (err error) {
				text := make([]byte, 80)
				for i := 0; i < n && err == nil; i++ {
					binary.BigEndian.PutUint32(text, uint32(i))
					err = s.put(i, text)
				}
				return err
			}},
			{"flush", s.flush},
			{"read", func() error {
				rows, keys, bytes, err := s.sum()
				m.Checksum = fmt.Sprint(rows, keys, bytes)
				return err
			}},
			{"drop", s.drop},
		} {
			took, err := env.Clock(step.do)
			if err != nil {
				return m, errors.Join(fmt.Errorf("%s: %w", step.name, err), s.Close())
			}
			total += took
			m.Metrics[step.name] = float64(took.Microseconds()) / float64(n)
		}
		m.Value = float64(total.Microseconds()) / float64(n)
		rows, _, _, err := s.sum()
		if err == nil && rows > 0 {
			err = fmt.Errorf("%d rows are left", rows)
		}
		return m, errors.Join(err, s.Close())
	}
}

type manyInOribi struct {
	*oribi.Store
	ctx    context.Context
	tables []*oribi.Table
	batch  *oribi.Batch
}

func oribiMany(env *harness.Env) (manyStore, error) {
	store, err := oribi.Open(env.Path(storeDir), &oribi.Options{MemoryLimit: storeMemory})
	if err != nil {
		return nil, err
	}
	return &manyInOribi{Store: store, ctx: context.Background(), batch: store.NewBatch()}, nil
}

func (s *manyInOribi) create(n int) error {
	columns, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Binary}}, 1)
	list := make([]oribi.NewTable, n)
	for i := range list {
		list[i] = oribi.NewTable{Name: fmt.Sprint("table", i), Columns: columns}
	}
	if err == nil {
		s.tables, err = s.CreateTables(list...)
	}
	return err
}

func (s *manyInOribi) put(table int, text []byte) error {
	s.batch.Reset()
	cells := [][]byte{make([]byte, 8), text}
	for k := range manyRows {
		binary.LittleEndian.PutUint64(cells[0], uint64(k))
		s.batch.Cells(oribi.OpInsert, s.tables[table], cells, nil)
	}
	_, err := s.batch.Commit(s.ctx, oribi.NoSync)
	return err
}

func (s *manyInOribi) flush() error { return s.FlushTables(s.ctx, s.tables...) }

func (s *manyInOribi) sum() (rows, keys, bytes int64, err error) {
	for _, t := range s.Tables() {
		for row, err := range t.Scan(s.ctx).Rows() {
			if err != nil {
				return 0, 0, 0, err
			}
			rows, keys, bytes = rows+1, keys+row["k"].(int64), bytes+sumBytes(row["v"].([]byte))
		}
	}
	return rows, keys, bytes, nil
}

func (s *manyInOribi) drop() error {
	names := make([]string, len(s.tables))
	for i, t := range s.tables {
		names[i] = t.Name()
	}
	return s.DropTables(names...)
}

// sumBytes returns the number that put has written first.
func sumBytes(text []byte) int64 { return int64(binary.BigEndian.Uint32(text)) + int64(len(text)) }

// manyInBbolt has a bucket for each table.
type manyInBbolt struct {
	*bolt.DB
	n int
}

func bboltMany(env *harness.Env) (manyStore, error) {
	db, err := bolt.Open(env.Path(storeDir), 0o600, nil)
	return &manyInBbolt{DB: db}, err
}

func tableName(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }

func (s *manyInBbolt) create(n int) error {
	s.n = n
	return s.Update(func(tx *bolt.Tx) (err error) {
		for i := 0; i < n && err == nil; i++ {
			_, err = tx.CreateBucket(tableName(i))
		}
		return err
	})
}

func (s *manyInBbolt) put(table int, text []byte) error {
	s.NoSync = true
	return s.Update(func(tx *bolt.Tx) (err error) {
		rows := tx.Bucket(tableName(table))
		for k := 0; k < manyRows && err == nil; k++ {
			err = rows.Put(binary.BigEndian.AppendUint64(nil, uint64(k)), text)
		}
		return err
	})
}

func (s *manyInBbolt) flush() error {
	s.NoSync = false
	return s.Sync()
}

func (s *manyInBbolt) sum() (rows, keys, bytes int64, err error) {
	err = s.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				rows, keys, bytes = rows+1, keys+int64(binary.BigEndian.Uint64(k)), bytes+sumBytes(v)
				return nil
			})
		})
	})
	return rows, keys, bytes, err
}

func (s *manyInBbolt) drop() error {
	return s.Update(func(tx *bolt.Tx) (err error) {
		for i := 0; i < s.n && err == nil; i++ {
			err = tx.DeleteBucket(tableName(i))
		}
		return err
	})
}

// manyInPebble has a prefix of keys for each table.
type manyInPebble struct {
	*pebble.DB
	n int
}

func pebbleMany(env *harness.Env) (manyStore, error) {
	db, err := openPebble(env.Path(storeDir), false)
	return &manyInPebble{DB: db}, err
}

func (s *manyInPebble) create(n int) error {
	s.n = n
	return nil
}

func (s *manyInPebble) put(table int, text []byte) (err error) {
	b := s.NewBatch()
	defer b.Close()
	for k := 0; k < manyRows && err == nil; k++ {
		err = b.Set(binary.BigEndian.AppendUint64(tableName(table), uint64(k)), text, nil)
	}
	return errors.Join(err, b.Commit(pebble.NoSync))
}

func (s *manyInPebble) flush() error { return s.Flush() }

func (s *manyInPebble) sum() (rows, keys, bytes int64, err error) {
	it, err := s.NewIter(nil)
	if err != nil {
		return 0, 0, 0, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		rows, keys = rows+1, keys+int64(binary.BigEndian.Uint64(it.Key()[4:]))
		bytes += sumBytes(it.Value())
	}
	return rows, keys, bytes, it.Close()
}

func (s *manyInPebble) drop() (err error) {
	b := s.NewBatch()
	defer b.Close()
	for i := 0; i < s.n && err == nil; i++ {
		err = b.DeleteRange(tableName(i), tableName(i+1), nil)
	}
	return errors.Join(err, b.Commit(pebble.Sync))
}
