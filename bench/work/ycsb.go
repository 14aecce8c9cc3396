package work

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
)

// ycsbGroup is the state from which all YCSB workloads start.
const ycsbGroup = "ycsb"

// Kinds of YCSB operations.
const (
	ycsbRead = iota
	ycsbUpdate
	ycsbInsert
	ycsbScan
	ycsbModify // read, then update
)

// ycsbOp is one operation, generated before the clock starts.
type ycsbOp struct {
	kind, field, rows uint8
	record            uint64
}

// ycsbMix contains how many of a hundred operations are not reads, and their kind.
type ycsbMix struct {
	letter string
	about  string
	other  int
	kind   uint8
	base   uint8 // kind of the operations that are not reads
	part   int   // other mixes have this many times the operations
}

var ycsbMixes = []ycsbMix{
	{"a", "50 % reads, 50 % updates of a field", 50, ycsbUpdate, ycsbRead, 1},
	{"b", "95 % reads, 5 % updates of a field", 5, ycsbUpdate, ycsbRead, 1},
	{"c", "reads", 0, ycsbRead, ycsbRead, 1},
	{"d", "95 % reads, 5 % inserts", 5, ycsbInsert, ycsbRead, 1},
	{"e", "95 % scans of 1 to 100 records, 5 % inserts", 5, ycsbInsert, ycsbScan, 5},
	{"f", "50 % reads, 50 % reads followed by an update of a field", 50, ycsbModify, ycsbRead, 1},
}

// ycsb returns the mixes A to F, each with three distributions of records, warm and cold.
func ycsb(all []peer.Driver) (out []harness.Workload) {
	for _, mix := range ycsbMixes {
		for _, choice := range []string{"uniform", "zipf", "latest"} {
			out = append(out, ycsbWorkload(all, mix, choice, false), ycsbWorkload(all, mix, choice, true))
		}
	}
	return out
}

func ycsbWorkload(all []peer.Driver, mix ycsbMix, choice string, cold bool) harness.Workload {
	name, state := "ycsb-"+mix.letter+"-"+choice, "after a warm-up"
	if cold {
		name, state = name+ycsbCold, "right after opening, with nothing in the page cache"
	}
	w := harness.Workload{
		Name: name,
		About: fmt.Sprintf("YCSB %s: %s; records of 10 fields of 100 bytes, chosen %s; %s; one thread, no sync",
			mix.letter, mix.about, ycsbChoices[choice], state),
		Unit: "operations/s", More: true, MemoryLimit: peakLimit, Group: ycsbGroup, Copies: mix.other > 0, Cold: cold,
		Floors: ycsbFloors(mix.letter),
	}
	if choice == "zipf" && !cold {
		w.Floors = append(w.Floors, harness.Floor{Peer: "oribi", Against: "oribi",
			Workload: "ycsb-" + mix.letter + "-uniform", Ratio: 1, Least: true})
	}
	for _, d := range drivers(all, peer.KV) {
		w.Peers = append(w.Peers, harness.Peer{Name: d.Name, Ours: d.Ours, Module: d.Module,
			Prepare: func(env *harness.Env) error {
				return prepareYCSB(env, &d)
			},
			Measure: func(env *harness.Env) (harness.Measurement, error) {
				return measureYCSB(env, &d, &mix, choice, cold)
			}})
	}
	return w
}

// ycsbCold ends the names of the workloads that start with empty caches.
const ycsbCold = "-cold"

// ycsbFloors returns the goals of a mix.
func ycsbFloors(letter string) []harness.Floor {
	switch letter {
	case "b", "c", "d":
		return []harness.Floor{{Peer: peer.OribiRows.Name, Against: "pebble", Ratio: 1.5, Least: true},
			{Peer: peer.OribiRows.Name, Against: "bbolt", Ratio: 1, Least: true}}
	case "e":
		return []harness.Floor{{Peer: peer.OribiRows.Name, Against: harness.BestPeer, Ratio: 1, Least: true}}
	}
	return []harness.Floor{{Peer: peer.OribiRows.Name, Against: "pebble", Ratio: 1, Least: true}}
}

var ycsbChoices = map[string]string{"uniform": "evenly", "zipf": "by Zipf 0.99, scattered over the keys",
	"latest": "by Zipf 0.99, newest most often"}

// ycsbKey returns the key of record i. Keys are in no particular order.
func ycsbKey(dst []byte, i uint64) []byte {
	return fmt.Appendf(dst[:0], "user%020d", scatter(i))
}

// scatter is FNV-1a of the eight bytes, as in YCSB.
func scatter(i uint64) uint64 {
	h := uint64(0xcbf29ce484222325)
	for range 8 {
		h = (h ^ i&0xff) * 0x100000001b3
		i >>= 8
	}
	return h
}

// ycsbValue returns a record's fields: printable bytes that compress less well than text.
func ycsbValue(dst []byte, seed uint64, n int) []byte {
	r := rand.NewPCG(seed, 1)
	dst = dst[:0]
	for len(dst) < n {
		dst = binary.LittleEndian.AppendUint64(dst, r.Uint64()&0x3f3f3f3f3f3f3f3f+0x2020202020202020)
	}
	return dst[:n]
}

func openRecords(env *harness.Env, d *peer.Driver, sync bool) (peer.Records, error) {
	dir := env.Path(storeDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return d.Records(dir, sync)
}

// ycsbRecords returns the initial number of records: at most five million, which are 5 GB.
func ycsbRecords(env *harness.Env) int {
	const most = 5_000_000
	return min(env.Scale.Table, most)
}

func prepareYCSB(env *harness.Env, d *peer.Driver) error {
	r, err := openRecords(env, d, false)
	if err != nil {
		return err
	}
	if err = putRecords(r, ycsbRecords(env), peer.Fields*peer.FieldBytes); err == nil {
		err = r.FinishWork()
	}
	return closeAll(err, r)
}

// putRecords writes records 0 to n−1, each of so many bytes, in the order of their keys. After a
// compaction the state is the same as for any other order, and this order is much faster.
func putRecords(r peer.Records, n, bytes int) error {
	const together = 1000
	type record struct{ key, number uint64 } // numbers have leading zeros, so keys sort like numbers
	records := make([]record, n)
	for i := range records {
		records[i] = record{scatter(uint64(i)), uint64(i)}
	}
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(a.key, b.key) })
	var keys, values [][]byte
	for some := range slices.Chunk(records, together) {
		keys, values = keys[:0], values[:0]
		for i := range some {
			keys, values = append(keys, ycsbKey(nil, some[i].number)),
				append(values, ycsbValue(nil, some[i].number, bytes))
		}
		if err := r.Put(keys, values); err != nil {
			return err
		}
	}
	return nil
}

// zipf draws numbers below n, 0 most often. Source: Gray and others, Quickly generating
// billion-record synthetic databases, 1994.
type zipf struct {
	n                       float64
	theta, alpha, zeta, eta float64
}

const zipfTheta = 0.99

func newZipf(n int) *zipf {
	z := &zipf{n: float64(n), theta: zipfTheta, alpha: 1 / (1 - zipfTheta)}
	for i := 1; i <= n; i++ {
		z.zeta += 1 / math.Pow(float64(i), z.theta)
	}
	two := 1 + math.Pow(0.5, z.theta)
	z.eta = (1 - math.Pow(2/z.n, 1-z.theta)) / (1 - two/z.zeta)
	return z
}

func (z *zipf) draw(r *rand.Rand) uint64 {
	u := r.Float64()
	switch uz := u * z.zeta; {
	case uz < 1:
		return 0
	case uz < 1+math.Pow(0.5, z.theta):
		return 1
	}
	return min(uint64(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha)), uint64(z.n)-1)
}

// ycsbOps generates the operations, which are the same for all peers and rounds.
func ycsbOps(mix *ycsbMix, choice string, n, records int) []ycsbOp {
	r := rand.New(rand.NewPCG(1, scatter(uint64(mix.letter[0])<<8|uint64(choice[0]))))
	ops := make([]ycsbOp, n)
	z := newZipf(records)
	next := uint64(records)
	for i := range ops {
		o := &ops[i]
		if o.kind = mix.base; r.IntN(100) < mix.other {
			o.kind = mix.kind
		}
		o.field, o.rows = uint8(r.IntN(peer.Fields)), uint8(1+r.IntN(100))
		switch {
		case o.kind == ycsbInsert:
			o.record, next = next, next+1
		case choice == "uniform":
			o.record = r.Uint64N(next)
		case choice == "zipf":
			o.record = scatter(z.draw(r)) % uint64(records)
		default:
			o.record = next - 1 - z.draw(r)
		}
	}
	return ops
}

// ycsbCounts returns how many operations of a round are executed before the clock starts, so that
// caches are full, and how many are measured.
func ycsbCounts(env *harness.Env, mix *ycsbMix, cold bool) (warmUp, measured int) {
	n := env.Scale.Gets / mix.part
	if cold {
		return 0, max(200, n/40)
	}
	return n, max(200, n/4)
}

func measureYCSB(
	env *harness.Env, d *peer.Driver, mix *ycsbMix, choice string, cold bool,
) (m harness.Measurement, err error) {
	warmUp, n := ycsbCounts(env, mix, cold)
	ops := ycsbOps(mix, choice, warmUp+n, ycsbRecords(env))
	r, err := openRecords(env, d, false)
	if err != nil {
		return m, err
	}
	return runYCSB(env, r, ops, warmUp, 0)
}

// runYCSB executes operations, of which the first ones are not measured, and closes the records. An
// operation writes a value of so many bytes; 0 = YCSB's fields.
func runYCSB(env *harness.Env, r peer.Records, ops []ycsbOp, warmUp, bytes int) (m harness.Measurement, err error) {
	n := len(ops) - warmUp
	run := ycsbRun{records: r, bytes: bytes}
	if err := run.all(ops[:warmUp], 0); err != nil {
		return m, closeAll(err, r)
	}
	run.sum = 0
	half := warmUp + n/2
	var first time.Duration
	took, err := env.Clock(func() error {
		begin := time.Now()
		if err := run.all(ops[warmUp:half], warmUp); err != nil {
			return err
		}
		first = time.Since(begin)
		return run.all(ops[half:], half)
	})
	if err = closeAll(err, r); err != nil {
		return m, err
	}
	m.Value, m.Checksum = float64(n)/took.Seconds(), fmt.Sprintf("%016x", run.sum)
	m.Metrics = map[string]float64{"second/first half": (took - first).Seconds() / first.Seconds()}
	return m, nil
}

// ycsbRun executes operations and returns a checksum of the values that it reads.
type ycsbRun struct {
	records    peer.Records
	bytes      int // of a value that is written as a whole; 0 = records have fields
	key, value []byte
	sum        uint64
}

// all executes operations; first is the number of the first one.
func (y *ycsbRun) all(ops []ycsbOp, first int) error {
	for i := range ops {
		if err := y.do(&ops[i], uint64(first+i)); err != nil {
			return err
		}
	}
	return nil
}

var errNoRecord = errors.New("a record is missing")

func (y *ycsbRun) do(o *ycsbOp, seed uint64) error {
	y.key = ycsbKey(y.key, o.record)
	switch o.kind {
	case ycsbInsert:
		y.value = ycsbValue(y.value, o.record, cmp.Or(y.bytes, peer.Fields*peer.FieldBytes))
		return y.records.Put([][]byte{y.key}, [][]byte{y.value})
	case ycsbScan:
		return y.records.Scan(y.key, int(o.rows), func(key, value []byte) {
			y.sum += xxh3.HashSeed(value, xxh3.Hash(key))
		})
	}
	if o.kind == ycsbRead || o.kind == ycsbModify {
		got, err := y.records.Read(y.key)
		if err != nil {
			return err
		}
		if got == nil {
			return fmt.Errorf("%s: %w", y.key, errNoRecord)
		}
		y.sum += xxh3.Hash(got)
	}
	if o.kind == ycsbRead {
		return nil
	}
	if y.bytes > 0 {
		y.value = ycsbValue(y.value, seed, y.bytes)
		return y.records.Put([][]byte{y.key}, [][]byte{y.value})
	}
	y.value = ycsbValue(y.value, seed, peer.FieldBytes)
	return y.records.Update(y.key, int(o.field), y.value)
}
