package work

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/schema"
)

const (
	commitTable = "commits"
	commitValue = 100 // bytes of a row's value
)

// syncWriters are the numbers of writers of the workloads that measure group commit.
var syncWriters = []int{16, 64}

// syncOne measures the latency of a program that waits for each of its rows.
func syncOne() harness.Workload {
	return harness.Workload{
		Name:  "commit-sync",
		About: "one writer, write batches of one row of 100 bytes, every batch synced; median latency",
		Unit:  "µs", Fresh: true, MemoryLimit: peakLimit,
		Peers: []harness.Peer{
			{Name: "oribi", Ours: true, Measure: func(env *harness.Env) (harness.Measurement, error) {
				return syncOribi(env, 1)
			}},
			{Name: "pebble", Measure: func(env *harness.Env) (harness.Measurement, error) {
				return syncPebble(env, 1)
			}},
		},
		Floors: []harness.Floor{{Peer: "oribi", Against: "pebble", Ratio: 1}},
	}
}

// syncMany measures group commit.
func syncMany(writers int) harness.Workload {
	return harness.Workload{
		Name:  fmt.Sprintf("commit-sync-%d", writers),
		About: fmt.Sprintf("%d writers, write batches of one row of 100 bytes, every batch synced", writers),
		Unit:  "commits/s", More: true, Fresh: true, MemoryLimit: peakLimit,
		Peers: []harness.Peer{
			{Name: "oribi", Ours: true, Measure: func(env *harness.Env) (harness.Measurement, error) {
				return syncOribi(env, writers)
			}},
			{Name: "pebble", Measure: func(env *harness.Env) (harness.Measurement, error) {
				return syncPebble(env, writers)
			}},
		},
		Floors: []harness.Floor{{Peer: "oribi", Against: "pebble", Ratio: 2, Least: true}},
	}
}

// commits makes the writers do n commits in total. The value is the median latency in µs for one
// writer, else commits per second.
func commits(env *harness.Env, writers, n int, commit func(writer, key int) error) (m harness.Measurement, err error) {
	latencies := make([]float64, n)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	took, err := env.Clock(func() error {
		var done sync.WaitGroup
		for w := range writers {
			done.Go(func() {
				for {
					k := int(next.Add(1)) - 1
					if k >= n || failed.Load() != nil {
						return
					}
					begin := time.Now()
					if err := commit(w, k); err != nil {
						failed.Store(&err)
					}
					latencies[k] = float64(time.Since(begin).Nanoseconds()) / 1000
				}
			})
		}
		done.Wait()
		if err := failed.Load(); err != nil {
			return *err
		}
		return nil
	})
	m.Value = middle(latencies)
	if writers > 1 {
		m.Value = float64(n) / took.Seconds()
	}
	m.Checksum = fmt.Sprint(n)
	return m, err
}

// syncCount returns the number of commits in a round, which takes about half a second.
func syncCount(env *harness.Env, writers int) int { return env.Scale.Gets / 50 * max(1, writers/4) }

func commitSchema() (*schema.Schema, error) {
	return schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Binary}}, 1)
}

func createCommits(dir string, o *oribi.Options) (*oribi.Store, *oribi.Table, error) {
	s, err := commitSchema()
	if err != nil {
		return nil, nil, err
	}
	store, err := oribi.Open(dir, o)
	if err != nil {
		return nil, nil, err
	}
	t, err := store.CreateTable(commitTable, s)
	if err != nil {
		store.Close()
	}
	return store, t, err
}

func syncOribi(env *harness.Env, writers int) (m harness.Measurement, err error) {
	store, t, err := createCommits(env.Path(storeDir), nil)
	if err != nil {
		return m, err
	}
	batches := make([]*oribi.Batch, writers)
	for i := range batches {
		batches[i] = store.NewBatch()
	}
	value := make([]byte, commitValue)
	m, err = commits(env, writers, syncCount(env, writers), func(w, k int) error {
		batches[w].Insert(t, oribi.Row{"k": k, "v": value})
		_, err := batches[w].Commit(context.Background())
		return err
	})
	return m, closeAll(err, store)
}

func syncPebble(env *harness.Env, writers int) (m harness.Measurement, err error) {
	db, err := openPebble(env.Path(storeDir), false)
	if err != nil {
		return m, err
	}
	value := make([]byte, commitValue)
	m, err = commits(env, writers, syncCount(env, writers), func(_, k int) error {
		return db.Set(binary.BigEndian.AppendUint64(nil, uint64(k)), value, pebble.Sync)
	})
	return m, closeAll(err, db)
}

// replay opens, read-only, the store that a killed writer left: a log of rows that were never
// flushed.
func replay() harness.Workload {
	return harness.Workload{
		Name: "replay",
		About: "open, read-only, a store whose log has a million rows (10,000 at small scale) of 100 bytes in " +
			"batches of 100 that were never flushed",
		Unit: "rows/s", More: true,
		Peers: []harness.Peer{
			{Name: "oribi", Ours: true, Prepare: prepareKilled,
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return reopening(env, func() (opened, error) {
						store, err := oribi.Open(env.Path(storeDir),
							&oribi.Options{ReadOnly: true, MemoryLimit: replayMemory})
						return opened{store, func() (string, error) { return checkCommits(store) }}, err
					})
				}},
			{Name: "pebble", Prepare: prepareKilledPebble,
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return reopening(env, func() (opened, error) {
						db, err := replayPebble(env.Path(storeDir), true)
						return opened{db, func() (string, error) { return checkPebble(db) }}, err
					})
				}},
		},
		Floors: []harness.Floor{{Peer: "oribi", Against: "pebble", Ratio: 0.8, Least: true}},
	}
}

const (
	replayMemory = 1 << 30 // prevents flushes
	replayBatch  = 100
	aliveDir     = "alive" // directory of the writer that is killed
)

// replayCount returns the number of rows in the log.
func replayCount(env *harness.Env) int { return env.Scale.Inserts }

// errFlushed reports that a log does not contain all rows.
var errFlushed = errors.New("some rows were flushed, so the log does not contain them")

// reopening measures open, and then reads all rows of the opened store.
func reopening(env *harness.Env, open func() (opened, error)) (m harness.Measurement, err error) {
	var o opened
	took, err := env.Clock(func() (err error) {
		o, err = open()
		return err
	})
	if err != nil {
		return m, err
	}
	m.Value = float64(replayCount(env)) / took.Seconds()
	m.Checksum, err = o.answer()
	return m, closeAll(err, o)
}

// checkCommits returns the checksum of the commits in a store; checkPebble returns the same for the
// same rows.
func checkCommits(store *oribi.Store) (string, error) {
	t, err := store.Table(commitTable)
	if err != nil {
		return "", err
	}
	var sum checksum
	var key []byte
	for b, err := range t.Scan(context.Background()).Batches() {
		if err != nil {
			return "", err
		}
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			key = binary.BigEndian.AppendUint64(key[:0], uint64(batch.Values[int64](b.Columns[0])[i]))
			sum.add(key, b.Columns[1].Cell(i))
		}
	}
	return sum.String(), nil
}

func prepareKilled(env *harness.Env) error {
	store, t, err := createCommits(env.Path(aliveDir), &oribi.Options{Manual: true, MemoryLimit: replayMemory})
	if err != nil {
		return err
	}
	b, value := store.NewBatch(), make([]byte, commitValue)
	for k := range replayCount(env) {
		b.Insert(t, oribi.Row{"k": k, "v": value})
		if b.Len() < replayBatch {
			continue
		}
		if _, err := b.Commit(context.Background(), oribi.NoSync); err != nil {
			return closeAll(err, store)
		}
	}
	if len(t.Layout().RowSets) > 0 {
		return closeAll(errFlushed, store)
	}
	return killed(env, store)
}

// killed copies the files of a writer while it is open, as a kill would leave them, and then closes
// the writer.
func killed(env *harness.Env, writer io.Closer) error {
	alive := env.Path(aliveDir)
	if err := closeAll(os.CopyFS(env.Path(storeDir), os.DirFS(alive)), writer); err != nil {
		return err
	}
	return os.RemoveAll(alive)
}

// replayMemtable is the size of Pebble's memtable, which takes all rows.
const replayMemtable = 256 << 20

func replayPebble(dir string, readOnly bool) (*pebble.DB, error) {
	return pebble.Open(dir, &pebble.Options{MemTableSize: replayMemtable, ReadOnly: readOnly, Logger: quiet{}})
}

// growMemtable makes the empty database use its configured memtable size. Pebble starts with 256
// KiB and doubles the size with each memtable; the rows of a full memtable are flushed and leave
// the log. A write of more than a quarter of the final size makes the next memtable the last; the
// row is then removed from all files.
func growMemtable(db *pebble.DB) error {
	key := []byte("grow")
	if err := db.Set(key, make([]byte, replayMemtable*3/10), pebble.NoSync); err != nil {
		return err
	}
	if err := db.Delete(key, pebble.NoSync); err != nil {
		return err
	}
	if err := db.Flush(); err != nil {
		return err
	}
	return db.Compact(context.Background(), key, append(key, 0), false)
}

func prepareKilledPebble(env *harness.Env) error {
	db, err := replayPebble(env.Path(aliveDir), false)
	if err != nil {
		return err
	}
	if err := growMemtable(db); err != nil {
		return closeAll(err, db)
	}
	value := make([]byte, commitValue)
	for k := 0; k < replayCount(env); k += replayBatch {
		b := db.NewBatch()
		for i := range replayBatch {
			if err := b.Set(binary.BigEndian.AppendUint64(nil, uint64(k+i)), value, nil); err != nil {
				return closeAll(err, db)
			}
		}
		if err := b.Commit(pebble.NoSync); err != nil {
			return closeAll(err, db)
		}
	}
	if err := db.LogData(nil, pebble.Sync); err != nil { // a goroutine of Pebble writes its log
		return closeAll(err, db)
	}
	if m := db.Metrics(); m.Total().TablesCount > 0 || m.WAL.Files != 1 {
		return closeAll(errFlushed, db)
	}
	return killed(env, db)
}
