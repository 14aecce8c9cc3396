package work

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
)

// followers measures followers (oribi.Options.Follow), and a writer next to them.
func followers() []harness.Workload {
	many := func(env *harness.Env) error {
		more := *env
		more.Scale.Sets *= 10
		return prepareSets(&more)
	}
	return []harness.Workload{{
		Name:  "follow-open",
		About: "open a closed store of 100 rowsets (5 at small scale) as a follower, and read-only, warm",
		Unit:  "ms", MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: []harness.Peer{
			{Name: "oribi-read", Ours: true, Prepare: prepareSets,
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return openStore(env, true)
				}},
			{Name: "oribi-follow", Ours: true, Prepare: prepareSets, Measure: openFollower},
		},
		Floors: []harness.Floor{{Peer: "oribi-follow", Against: "oribi-read", Ratio: 1.5}},
	}, {
		Name: "follow-refresh",
		About: "refresh a follower after 1,000 new rows in 100 write batches; a table of 1,000 rowsets (50 at small " +
			"scale) is next to them",
		Unit: "ms", Fresh: true, MemoryLimit: 2 * peakLimit, Inputs: lineitemInputs,
		Peers: []harness.Peer{{Name: "oribi", Ours: true, Prepare: many, Measure: measureRefreshes}},
		Floors: []harness.Floor{
			{Peer: "oribi", Figure: 2},
			{Peer: "oribi", Metric: metricFlushed, Figure: 5},
			{Peer: "oribi", Metric: metricNewSet, Figure: 10},
		},
	}, {
		Name: "follow-writer",
		About: "write batches of ten rows with two int64 columns, ascending keys, each synced; alone, and with four " +
			"followers in processes of their own that refresh ten times a second",
		Unit: "rows/s", More: true, Fresh: true, MemoryLimit: peakLimit,
		Peers: []harness.Peer{
			{Name: "oribi-alone", Ours: true, Measure: func(env *harness.Env) (harness.Measurement, error) {
				return writeFollowed(env, 0)
			}},
			{Name: "oribi-followed", Ours: true, Measure: func(env *harness.Env) (harness.Measurement, error) {
				return writeFollowed(env, 4)
			}, Act: refreshPeriodically},
		},
		Floors: []harness.Floor{{Peer: "oribi-followed", Against: "oribi-alone", Ratio: 0.97, Least: true}},
	}}
}

func openFollower(env *harness.Env) (harness.Measurement, error) {
	return openings(env, nil, func() (opened, error) {
		store, t, err := openLineitem(env.Path(storeDir), &oribi.Options{Follow: true})
		return opened{store, func() (string, error) { return checkStore(t) }}, err
	})
}

const (
	metricFlushed = "ms after a flush of the rows"
	metricNewSet  = "ms after a new rowset in the large table"
)

// followedRows is the number of new rows before a refresh, ten per write batch.
const followedRows = 1000

// measureRefreshes measures a refresh after new rows, one after their flush, and one after a flush
// of one row of a table with many rowsets.
func measureRefreshes(env *harness.Env) (m harness.Measurement, err error) {
	ctx := context.Background()
	store, large, err := openLineitem(env.Path(storeDir), &oribi.Options{Manual: true})
	if err != nil {
		return m, err
	}
	defer func() { err = closeAll(err, store) }()
	numbers, err := createNumbersIn(store)
	if err != nil {
		return m, err
	}
	w := &tensWriter{store: store, t: numbers, b: store.NewBatch()}
	follower, err := oribi.Open(env.Path(storeDir), &oribi.Options{Follow: true})
	if err != nil {
		return m, err
	}
	defer func() { err = closeAll(err, follower) }()
	var times [3][]float64
	refresh := func(i int) error {
		begin := time.Now()
		err := follower.Refresh(ctx)
		times[i] = append(times[i], time.Since(begin).Seconds()*1000)
		return err
	}
	var one oribi.Row
	for row, err := range large.Scan(ctx, oribi.Limit(1)).Rows() {
		if err != nil {
			return m, err
		}
		one = row
	}
	steps := []func() error{
		func() error { return w.write(followedRows, oribi.NoSync) },
		func() error { return numbers.Flush(ctx) },
		func() error {
			b := store.NewBatch()
			b.Delete(large, keyOf(large, one))
			b.Insert(large, one)
			_, err := b.Commit(ctx, oribi.NoSync)
			if err == nil {
				err = large.Flush(ctx)
			}
			return err
		},
	}
	_, err = env.Clock(func() error {
		for range 5 * env.Scale.Passes {
			for i, step := range steps {
				if err := step(); err != nil {
					return err
				}
				if err := refresh(i); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	seen, err := follower.Table(numbersTable)
	if err != nil {
		return m, err
	}
	if n, err := seen.Count(ctx); err != nil || n != int64(w.next) {
		return m, fmt.Errorf("the follower has %d rows, the writer %d: %w", n, w.next, errors.Join(err))
	}
	m.Value = middle(times[0])
	m.Metrics = map[string]float64{metricFlushed: middle(times[1]), metricNewSet: middle(times[2]),
		"ms at most": slices.Max(times[0])}
	return m, nil
}

// keyOf returns the key columns of a row.
func keyOf(t *oribi.Table, row oribi.Row) oribi.Row {
	key := oribi.Row{}
	for _, c := range t.Schema().Columns[:t.Schema().Keys] {
		key[c.Name] = row[c.Name]
	}
	return key
}

// tensWriter writes rows with ascending keys, ten per write batch.
type tensWriter struct {
	store      *oribi.Store
	t          *oribi.Table
	b          *oribi.Batch
	next       int
	key, value [8]byte
}

func (w *tensWriter) write(rows int, opts ...oribi.CommitOption) error {
	cells := [][]byte{w.key[:], w.value[:]}
	for end := w.next + rows; w.next < end; {
		for range 10 {
			binary.LittleEndian.PutUint64(w.key[:], uint64(w.next))
			binary.LittleEndian.PutUint64(w.value[:], uint64(w.next))
			w.b.Cells(oribi.OpInsert, w.t, cells, nil)
			w.next++
		}
		if _, err := w.b.Commit(context.Background(), opts...); err != nil {
			return err
		}
	}
	return nil
}

// metricNoSync is of a writer that takes all of a processor: what followers need for the same rows,
// it may lack.
const metricNoSync = "rows/s without syncs"

// writeFollowed writes rows next to followers in processes of their own: a fifth of them in batches
// that are synced, which takes some seconds and so many refreshes, then the others without.
func writeFollowed(env *harness.Env, n int) (m harness.Measurement, err error) {
	store, err := oribi.Open(env.Path(storeDir), nil)
	if err != nil {
		return m, err
	}
	defer func() { err = closeAll(err, store) }()
	t, err := createNumbersIn(store)
	if err != nil {
		return m, err
	}
	var children followerProcesses
	defer func() { err = errors.Join(err, children.end()) }()
	for range n {
		if err := children.start(env); err != nil {
			return m, err
		}
	}
	rows := 10 * env.Scale.Gets
	w := &tensWriter{store: store, t: t, b: store.NewBatch()}
	took, err := env.Clock(func() error { return w.write(rows / 5) })
	if err != nil {
		return m, err
	}
	m.Value = float64(w.next) / took.Seconds()
	begin := time.Now()
	if err := w.write(rows-w.next, oribi.NoSync); err != nil {
		return m, err
	}
	m.Metrics = map[string]float64{metricNoSync: float64(rows-rows/5) / time.Since(begin).Seconds()}
	m.Checksum = fmt.Sprint(w.next)
	return m, nil
}

// followerProcesses are processes that refresh a follower until their standard input ends.
type followerProcesses struct {
	commands []*exec.Cmd
	inputs   []io.Closer
}

// start starts a process, and returns when its follower is open.
func (p *followerProcesses) start(env *harness.Env) error {
	cmd, err := env.Self(context.Background())
	if err != nil {
		return err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	p.commands, p.inputs = append(p.commands, cmd), append(p.inputs, in)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("a follower's process: %q, %w", line, err)
	}
	return nil
}

// end ends the processes. A failure of one is an error.
func (p *followerProcesses) end() error {
	var errs []error
	for i, cmd := range p.commands {
		p.inputs[i].Close()
		errs = append(errs, cmd.Wait())
	}
	return errors.Join(errs...)
}

// refreshPeriodically refreshes a follower ten times a second until the standard input ends.
func refreshPeriodically(env *harness.Env) error {
	s, err := oribi.Open(env.Path(storeDir), &oribi.Options{Follow: true})
	if err != nil {
		return err
	}
	fmt.Println("open")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
			return closeAll(err, s)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return s.Close()
}
