package work

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/cockroachdb/pebble/v2"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/schema"
)

// The workloads of this file use a table of events that is larger than the cache: nine columns, 93
// bytes a row. Keys are even numbers in ascending order, and each call takes one at random, evenly.
// Figures are processor time, since the files are in the page cache.

// beyond returns the workloads.
func beyond() []harness.Workload {
	out := []harness.Workload{
		events("get-uniform", "read a whole row by key", 1, func(e eventStore, env *harness.Env, r *rand.Rand) (uint64, error) {
			return e.get(randomKey(env, r))
		}),
		events("get-one-uniform", "read one column of a row by key", 1,
			func(e eventStore, env *harness.Env, r *rand.Rand) (uint64, error) { return e.getOne(randomKey(env, r)) }),
		events("get-64-uniform", "read 64 whole rows by their keys, in one call if the peer has one", manyKeys,
			func(e eventStore, env *harness.Env, r *rand.Rand) (uint64, error) {
				keys := make([]int64, manyKeys)
				for i := range keys {
					keys[i] = randomKey(env, r)
				}
				return e.getMany(keys)
			}),
		events("has-uniform", "look up a key, of which every second one is absent", 1,
			func(e eventStore, env *harness.Env, r *rand.Rand) (uint64, error) {
				found, err := e.has(randomKey(env, r) + r.Int64N(2))
				if found {
					return 1, err
				}
				return 0, err
			}),
		events("range-uniform", "read 100 rows from a key on", 1,
			func(e eventStore, env *harness.Env, r *rand.Rand) (uint64, error) {
				return e.scan(randomKey(env, r), rangeRows)
			}),
		events("update-uniform", "update a number of 1,000 rows in a batch, without sync", batchRows,
			func(e eventStore, env *harness.Env, r *rand.Rand) (uint64, error) {
				keys := make([]int64, batchRows)
				for i := range keys {
					keys[i] = randomKey(env, r)
				}
				return 0, e.update(keys, r.Int64())
			}),
		events("delete-range", "delete 100,000 consecutive rows, without sync, and read the row after them", deletedRows,
			func(e eventStore, env *harness.Env, r *rand.Rand) (uint64, error) {
				from := randomKey(env, r)
				if err := e.deleteRange(from, from+2*deletedRows); err != nil {
					return 0, err
				}
				return e.scan(from, 1)
			}),
	}
	for i := range out {
		out[i].Copies = out[i].Name == "update-uniform" || out[i].Name == "delete-range"
	}
	get := &out[0] // see "Reading a row" in docs/lab.md
	for _, p := range []struct {
		name  string
		files schema.RowFile
	}{{"oribi-columns", schema.NoRowFile}, {"oribi-rows", schema.FullRowFile}} {
		get.Peers = append(get.Peers, eventsPeer(p.name, true, func(dir string) (eventStore, error) {
			return openOribiWith(dir, p.files)
		}, 1, func(e eventStore, env *harness.Env, r *rand.Rand) (uint64, error) { return e.get(randomKey(env, r)) }))
	}
	return out
}

// events returns a workload whose call concerns the given number of rows. call returns what it adds
// to the checksum.
func events(name, about string, rows int,
	call func(e eventStore, env *harness.Env, r *rand.Rand) (uint64, error)) harness.Workload {
	return harness.Workload{
		Name:  name,
		About: about + "; of a table larger than the cache, evenly chosen; processor time of a row, or of a range",
		Unit:  "CPU µs", MemoryLimit: peakLimit, Group: "events",
		Peers: []harness.Peer{eventsPeer("oribi", true, openOribiEvents, rows, call),
			eventsPeer("pebble", false, openPebbleEvents, rows, call)},
	}
}

// eventsPeer returns a peer with the table that open opens.
func eventsPeer(name string, ours bool, open func(dir string) (eventStore, error), rows int,
	call func(e eventStore, env *harness.Env, r *rand.Rand) (uint64, error)) harness.Peer {
	return harness.Peer{Name: name, Ours: ours,
		Prepare: func(env *harness.Env) error {
			e, err := open(env.Path(storeDir))
			if err != nil {
				return err
			}
			return closeAll(e.load(env.Scale.Large), e)
		},
		Measure: func(env *harness.Env) (m harness.Measurement, err error) {
			e, err := open(env.Path(storeDir))
			if err != nil {
				return m, err
			}
			m, err = measureEvents(env, e, rows, call)
			return m, closeAll(err, e)
		}}
}

// measureEvents measures calls, after as many that fill the caches.
func measureEvents(env *harness.Env, e eventStore, rows int,
	call func(e eventStore, env *harness.Env, r *rand.Rand) (uint64, error)) (m harness.Measurement, err error) {
	r := rand.New(rand.NewPCG(1, 1)) // the same in all rounds, whose answers are compared
	calls := max(1, env.Scale.Gets/2/rows)
	var sum uint64
	run := func() error {
		for range calls {
			n, err := call(e, env, r)
			if err != nil {
				return err
			}
			sum += n
		}
		return nil
	}
	if err := run(); err != nil { // fills the caches
		return m, err
	}
	if _, err := env.Clock(run); err != nil {
		return m, err
	}
	return harness.Measurement{Value: env.CPU() * 1e6 / float64(calls*rows), Checksum: fmt.Sprint(sum)}, nil
}

func randomKey(env *harness.Env, r *rand.Rand) int64 { return 2 * r.Int64N(int64(env.Scale.Large)) }

// event is a row.
type event struct {
	key, a int64
	b      int32
	price  float64
	time   int64
	low    string
	amount int64
	ok     bool
	id     [40]byte
}

// eventOf returns the row with a key, whose cells are made from the key.
func eventOf(key int64) (e event) {
	x := uint64(key)*0x9E3779B97F4A7C15 + 12345
	x ^= x >> 29
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 32
	y := x * 0x94D049BB133111EB
	y ^= y >> 31
	e = event{key: key, a: int64(x % 1000003), b: int32(y % 1009), price: float64(x>>40) / 100,
		time: 1700000000000000 + key*1000 + int64(y%900), low: lows[y>>60], amount: int64(y >> 34), ok: x&1 == 1}
	const digits = "0123456789abcdef"
	for i := range e.id {
		switch {
		case i < 16:
			e.id[i] = digits[x>>(60-4*i)&15]
		case i < 32:
			e.id[i] = digits[y>>(60-4*(i-16))&15]
		default:
			e.id[i] = digits[(x^y)>>(28-4*(i-32))&15]
		}
	}
	return e
}

var lows = func() (names [16]string) {
	for i := range names {
		names[i] = fmt.Sprintf("kind %d", i)
	}
	return names
}()

// eventStore is a peer's table of events.
type eventStore interface {
	load(rows int) error
	get(key int64) (sum uint64, err error)
	getOne(key int64) (amount uint64, err error)
	getMany(keys []int64) (sum uint64, err error)
	has(key int64) (bool, error)
	scan(from int64, rows int) (sum uint64, err error)
	insert(keys []int64) error
	update(keys []int64, a int64) error
	deleteRange(from, to int64) error
	Close() error
}

// oribiEvents is a table with the default options.
type oribiEvents struct {
	store *oribi.Store
	table *oribi.Table
	b     *oribi.Batch
	key   [8]byte
}

func openOribiEvents(dir string) (eventStore, error) { return openOribiWith(dir, schema.AutoRowFile) }

func openOribiWith(dir string, files schema.RowFile) (eventStore, error) {
	store, err := oribi.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	e := &oribiEvents{store: store, b: store.NewBatch()}
	if e.table, err = store.Table("events"); errors.Is(err, oribi.ErrNoTable) {
		var columns *schema.Schema
		columns, err = schema.New(eventColumns(), 1)
		if err == nil {
			e.table, err = store.CreateTable("events", columns, oribi.RowFile(files))
		}
	}
	if err != nil {
		return nil, closeAll(err, store)
	}
	return e, nil
}

func (e *oribiEvents) Close() error { return e.store.Close() }

func eventColumns() []schema.Column {
	return []schema.Column{{Name: "key", Type: schema.Int64}, {Name: "a", Type: schema.Int64},
		{Name: "b", Type: schema.Int32}, {Name: "price", Type: schema.Double}, {Name: "time", Type: schema.Timestamp},
		{Name: "low", Type: schema.String}, {Name: "amount", Type: schema.Int64}, {Name: "ok", Type: schema.Bool},
		{Name: "id", Type: schema.String}}
}

func (e *oribiEvents) load(rows int) error {
	return loadEvents(e.table, rows, func(i int) event { return eventOf(2 * int64(i)) })
}

// loadEvents ingests rows, which eventAt returns in ascending order of their keys.
func loadEvents(t *oribi.Table, rows int, eventAt func(i int) event) error {
	batches := func(yield func([]*batch.Vector, error) bool) {
		for from := 0; from < rows; from += batch.WindowRows {
			b := batch.New(t.Schema().Columns, min(batch.WindowRows, rows-from))
			c := b.Columns
			for i := range c[0].Len {
				row := eventAt(from + i)
				batch.Values[int64](c[0])[i], batch.Values[int64](c[1])[i] = row.key, row.a
				batch.Values[int32](c[2])[i], batch.Values[float64](c[3])[i] = row.b, row.price
				batch.Values[int64](c[4])[i], batch.Values[int64](c[6])[i] = row.time, row.amount
				c[5].Bytes[i], c[8].Bytes[i] = []byte(row.low), bytes.Clone(row.id[:])
				if row.ok {
					c[7].Data[i] = 1
				} else {
					c[7].Data[i] = 0
				}
			}
			if !yield(c, nil) {
				return
			}
		}
	}
	_, _, err := t.Ingest(context.Background(), iter.Seq2[[]*batch.Vector, error](batches))
	return err
}

// sumOf returns the sum of a row's cells.
func sumOf(c [][]byte) uint64 {
	le := binary.LittleEndian
	return le.Uint64(c[0]) + le.Uint64(c[1]) + uint64(int32(le.Uint32(c[2]))) + le.Uint64(c[3]) + le.Uint64(c[4]) +
		uint64(len(c[5])) + le.Uint64(c[6]) + uint64(c[7][0]) + uint64(c[8][0]) + uint64(c[8][39])
}

func (e *oribiEvents) keyCells(key int64) [][]byte {
	binary.LittleEndian.PutUint64(e.key[:], uint64(key))
	return [][]byte{e.key[:]}
}

func (e *oribiEvents) get(key int64) (uint64, error) {
	_, cells, err := e.table.GetCells(context.Background(), e.keyCells(key))
	if err != nil {
		return 0, err
	}
	return sumOf(cells), nil
}

func (e *oribiEvents) getOne(key int64) (uint64, error) {
	_, cells, err := e.table.GetCells(context.Background(), e.keyCells(key), oribi.Columns("amount"))
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(cells[0]), nil
}

func (e *oribiEvents) getMany(keys []int64) (sum uint64, err error) {
	list := make([]any, len(keys))
	for i, k := range keys {
		list[i] = k
	}
	_, rows, err := e.table.GetManyCells(context.Background(), list)
	for _, cells := range rows {
		sum += sumOf(cells)
	}
	return sum, err
}

func (e *oribiEvents) has(key int64) (bool, error) {
	return e.table.Has(context.Background(), e.keyCells(key))
}

func (e *oribiEvents) scan(from int64, rows int) (sum uint64, err error) {
	s := e.table.Scan(context.Background(), oribi.From(from), oribi.Limit(int64(rows)))
	cells := make([][]byte, 9)
	for b, err := range s.Batches() {
		if err != nil {
			return 0, err
		}
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			for c, v := range b.Columns {
				cells[c] = v.Cell(i)
			}
			sum += sumOf(cells)
		}
	}
	return sum, nil
}

func (e *oribiEvents) insert(keys []int64) error {
	for _, k := range keys {
		r := eventOf(k)
		cells, le := make([][]byte, 9), binary.LittleEndian
		for i, v := range [...]int64{0: r.key, 1: r.a, 3: int64(math.Float64bits(r.price)), 4: r.time, 6: r.amount, 8: 0} {
			cells[i] = le.AppendUint64(nil, uint64(v))
		}
		cells[2], cells[5], cells[7] = le.AppendUint32(nil, uint32(r.b)), []byte(r.low), []byte{0}
		if r.ok {
			cells[7][0] = 1
		}
		cells[8] = r.id[:]
		e.b.Cells(oribi.OpInsert, e.table, cells, nil)
	}
	_, err := e.b.Commit(context.Background(), oribi.NoSync)
	e.b.Reset()
	return err
}

func (e *oribiEvents) update(keys []int64, a int64) error {
	for _, k := range keys {
		e.b.Update(e.table, oribi.Row{"key": k, "a": a})
	}
	_, err := e.b.Commit(context.Background(), oribi.NoSync)
	e.b.Reset()
	return err
}

func (e *oribiEvents) deleteRange(from, to int64) error {
	_, err := e.table.DeleteRange(context.Background(), from, to, oribi.NoSync)
	return err
}

// pebbleEvents has a value for each row: the cells of fixed width, then the low and the id.
type pebbleEvents struct {
	db    *pebble.DB
	key   []byte
	value []byte
}

func openPebbleEvents(dir string) (eventStore, error) {
	db, err := openPebbleWith(dir, false, storeMemory/2) // half of the store's memory is its cache
	if err != nil {
		return nil, err
	}
	return &pebbleEvents{db: db}, nil
}

func (e *pebbleEvents) Close() error { return e.db.Close() }

func (e *pebbleEvents) keyOf(key int64) []byte {
	e.key = binary.BigEndian.AppendUint64(e.key[:0], uint64(key))
	return e.key
}

func (e *pebbleEvents) deleteRange(from, to int64) error {
	return e.db.DeleteRange(e.keyOf(from), binary.BigEndian.AppendUint64(nil, uint64(to)), pebble.NoSync)
}

const (
	eventFixed = 8 + 4 + 8 + 8 + 8 + 1 + 40
	amountAt   = 28
)

func (e *pebbleEvents) valueOf(r *event) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(e.value[:0], uint64(r.a))
	b = le.AppendUint32(b, uint32(r.b))
	b = le.AppendUint64(b, math.Float64bits(r.price))
	b = le.AppendUint64(b, uint64(r.time))
	b = le.AppendUint64(b, uint64(r.amount))
	ok := byte(0)
	if r.ok {
		ok = 1
	}
	e.value = append(append(append(b, ok), r.id[:]...), r.low...)
	return e.value
}

func (e *pebbleEvents) insert(keys []int64) error {
	b := e.db.NewBatch()
	for _, k := range keys {
		r := eventOf(k)
		if err := b.Set(e.keyOf(k), e.valueOf(&r), nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.NoSync)
}

func (e *pebbleEvents) load(rows int) error {
	keys := make([]int64, 0, batchRows)
	for from := 0; from < rows; from += batchRows {
		keys = keys[:0]
		for i := from; i < min(from+batchRows, rows); i++ {
			keys = append(keys, 2*int64(i))
		}
		if err := e.insert(keys); err != nil {
			return err
		}
	}
	if err := e.db.Flush(); err != nil {
		return err
	}
	return e.db.Compact(context.Background(), e.keyOf(0), bytes.Repeat([]byte{0xff}, 9), true)
}

// sumValue returns the sum of a row's cells.
func sumValue(key int64, v []byte) uint64 {
	le := binary.LittleEndian
	return uint64(key) + le.Uint64(v) + uint64(int32(le.Uint32(v[8:]))) + le.Uint64(v[12:]) + le.Uint64(v[20:]) +
		le.Uint64(v[amountAt:]) + uint64(v[36]) + uint64(v[37]) + uint64(v[76]) + uint64(len(v)-eventFixed)
}

func (e *pebbleEvents) get(key int64) (uint64, error) {
	v, c, err := e.db.Get(e.keyOf(key))
	if err != nil {
		return 0, err
	}
	return sumValue(key, v), c.Close()
}

func (e *pebbleEvents) getOne(key int64) (uint64, error) {
	v, c, err := e.db.Get(e.keyOf(key))
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(v[amountAt:]), c.Close()
}

func (e *pebbleEvents) getMany(keys []int64) (sum uint64, err error) {
	for _, k := range keys {
		n, err := e.get(k)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func (e *pebbleEvents) has(key int64) (bool, error) {
	_, c, err := e.db.Get(e.keyOf(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, c.Close()
}

func (e *pebbleEvents) scan(from int64, rows int) (sum uint64, err error) {
	it, err := e.db.NewIter(nil)
	if err != nil {
		return 0, err
	}
	for ok := it.SeekGE(e.keyOf(from)); ok && rows > 0; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return 0, closeAll(err, it)
		}
		sum += sumValue(int64(binary.BigEndian.Uint64(it.Key())), v)
		rows--
	}
	return sum, it.Close()
}

func (e *pebbleEvents) update(keys []int64, a int64) error {
	b := e.db.NewBatch()
	for _, k := range keys {
		v, c, err := e.db.Get(e.keyOf(k))
		if err != nil {
			return err
		}
		e.value = append(e.value[:0], v...)
		if err := c.Close(); err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(e.value, uint64(a))
		if err := b.Set(e.key, e.value, nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.NoSync)
}
