package work

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
)

// commitOne measures write batches of one row, in sequence. It also counts how many of them a kill
// of the process loses.
func commitOne() harness.Workload {
	return harness.Workload{
		Name: "commit",
		About: "write batches of one row with two int64 columns, ascending keys, one writer, no sync; and how many " +
			"acknowledged rows a kill -9 loses",
		Unit: "µs", Fresh: true, MemoryLimit: peakLimit,
		Peers: []harness.Peer{
			committing("oribi", true, openCommitsOribi),
			committing("pebble", false, openCommitsPebble),
		},
		Floors: []harness.Floor{{Peer: "oribi", Against: "pebble", Ratio: 1.3}},
	}
}

const (
	metricLost = "rows lost by a kill" // of killedCommits that were acknowledged
	killedDir  = "killed"
)

// killedCommits is the number of rows that a process commits before it is killed.
func killedCommits(env *harness.Env) int { return env.Scale.Gets / 10 }

// committer is an open store of the workload commit.
type committer interface {
	put(i int) error // commits row i without a sync
	count() (int, error)
	io.Closer
}

func committing(name string, ours bool, open func(dir string) (committer, error)) harness.Peer {
	return harness.Peer{Name: name, Ours: ours,
		Measure: func(env *harness.Env) (harness.Measurement, error) { return measureCommits(env, ours, open) },
		Act:     func(env *harness.Env) error { return commitAndDie(env, open) },
	}
}

func measureCommits(
	env *harness.Env, ours bool, open func(dir string) (committer, error),
) (m harness.Measurement, err error) {
	c, err := open(env.Path(storeDir))
	if err != nil {
		return m, err
	}
	took, err := env.Clock(func() error {
		for i := range env.Scale.Gets {
			if err := c.put(i); err != nil {
				return err
			}
		}
		return nil
	})
	n, countErr := c.count()
	if err := closeAll(errors.Join(err, countErr), c); err != nil {
		return m, err
	}
	lost, err := lostByKill(env, open)
	if err == nil && ours && lost > 0 {
		err = fmt.Errorf("a kill lost %d acknowledged rows", lost)
	}
	return harness.Measurement{
		Value: took.Seconds() * 1e6 / float64(env.Scale.Gets), Checksum: fmt.Sprint(n),
		Metrics: map[string]float64{metricLost: float64(lost)},
	}, err
}

// lostByKill returns how many of the rows that another process has committed are gone after it
// killed itself.
func lostByKill(env *harness.Env, open func(dir string) (committer, error)) (lost int, err error) {
	child, err := env.Self(context.Background())
	if err != nil {
		return 0, err
	}
	if out, err := child.CombinedOutput(); err == nil || len(out) > 0 {
		return 0, fmt.Errorf("the process that kills itself: %v: %s", err, out)
	}
	c, err := open(env.Path(killedDir))
	if err != nil {
		return 0, err
	}
	n, err := c.count()
	return killedCommits(env) - n, closeAll(err, c)
}

// commitAndDie commits rows and kills its process at once.
func commitAndDie(env *harness.Env, open func(dir string) (committer, error)) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	c, err := open(env.Path(killedDir))
	if err != nil {
		return err
	}
	for i := range killedCommits(env) {
		if err := c.put(i); err != nil {
			return closeAll(err, c)
		}
	}
	if err := self.Kill(); err != nil {
		return closeAll(err, c)
	}
	select {} // until the signal arrives
}

type commitsOribi struct {
	store      *oribi.Store
	t          *oribi.Table
	b          *oribi.Batch
	key, value [8]byte
	cells      [][]byte
}

func openCommitsOribi(dir string) (committer, error) {
	store, err := oribi.Open(dir, &oribi.Options{Manual: true})
	if err != nil {
		return nil, err
	}
	t, err := store.Table(numbersTable)
	if errors.Is(err, oribi.ErrNoTable) {
		t, err = createNumbersIn(store)
	}
	if err != nil {
		return nil, closeAll(err, store)
	}
	c := &commitsOribi{store: store, t: t, b: store.NewBatch()}
	c.cells = [][]byte{c.key[:], c.value[:]}
	return c, nil
}

func (c *commitsOribi) put(i int) error {
	binary.LittleEndian.PutUint64(c.key[:], uint64(i))
	binary.LittleEndian.PutUint64(c.value[:], uint64(i))
	c.b.Cells(oribi.OpInsert, c.t, c.cells, nil)
	_, err := c.b.Commit(context.Background(), oribi.NoSync)
	return err
}

func (c *commitsOribi) count() (int, error) {
	n, err := c.t.Count(context.Background())
	return int(n), err
}

func (c *commitsOribi) Close() error { return c.store.Close() }

type commitsPebble struct {
	*pebble.DB
	key, value [8]byte
}

func openCommitsPebble(dir string) (committer, error) {
	db, err := openPebble(dir, false)
	if err != nil {
		return nil, err
	}
	return &commitsPebble{DB: db}, nil
}

func (c *commitsPebble) put(i int) error {
	binary.BigEndian.PutUint64(c.key[:], uint64(i))
	binary.LittleEndian.PutUint64(c.value[:], uint64(i))
	return c.Set(c.key[:], c.value[:], pebble.NoSync)
}

func (c *commitsPebble) count() (n int, err error) {
	it, err := c.NewIter(nil)
	if err != nil {
		return 0, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n, it.Close()
}
