package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/bench/work"
	"github.com/oribi-db/oribi/kudu/live"
	"github.com/oribi-db/oribi/mvcc"
)

// paced commits rows at a constant rate.
type paced struct {
	*writing
	store *oribi.Store
	table *oribi.Table
	next  time.Time // of the next commit
	took  []time.Duration

	mu      sync.Mutex
	commits []commit // those that have not arrived at the server
	longest time.Duration
}

type commit struct {
	ts mvcc.Timestamp
	at time.Time
}

// run commits n new rows.
func (p *paced) run(n int) error {
	p.next, p.took = time.Now(), nil
	b := p.store.NewBatch()
	err := p.each(n, func(rows *batch.RecordBatch) error {
		time.Sleep(time.Until(p.next))
		p.next = p.next.Add(time.Second * time.Duration(rows.Len) / work.KuduSyncRate)
		begin := time.Now()
		b.Vectors(oribi.OpInsert, p.table, rows.Columns)
		ts, err := b.Commit(context.Background(), oribi.NoSync)
		now := time.Now()
		p.took = append(p.took, now.Sub(begin))
		p.mu.Lock()
		p.commits = append(p.commits, commit{ts, now})
		p.mu.Unlock()
		return err
	})
	p.shift(p.step * int64(n/p.prepared)) // the next ones follow
	return err
}

// median returns the median duration of the commits of the last run.
func (p *paced) median() time.Duration {
	slices.Sort(p.took)
	return p.took[len(p.took)/2]
}

// arrived notes that all commits up to a time have arrived.
func (p *paced) arrived(until mvcc.Timestamp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.commits) && p.commits[n].ts <= until {
		n++
	}
	if n > 0 {
		p.longest = max(p.longest, time.Since(p.commits[0].at))
		p.commits = p.commits[n:]
	}
}

func (p *paced) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.commits)
}

// syncRows is how many rows each of the writers writes.
func syncRows(env *harness.Env) int {
	all, prepared := work.KuduRows(env)
	return max(prepared, min(all/5, 10*work.KuduSyncRate)/prepared*prepared)
}

// measureSync measures live.Sync next to a writer, between runs of the writer alone.
func measureSync(env *harness.Env, home func() (string, error)) (m harness.Measurement, err error) {
	c, err := startAt(env, home)
	if err != nil {
		return m, err
	}
	defer c.end()
	w, err := newWriting(env, c)
	if err != nil {
		return m, err
	}
	store, err := oribi.Open(env.Path("store"), &oribi.Options{MemoryLimit: peer.CacheBytes})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	s, err := work.PlainLineitem()
	if err != nil {
		return m, err
	}
	t, err := store.CreateTable(mainTable, s)
	if err != nil {
		return m, err
	}
	p := &paced{writing: w, store: store, table: t}
	n := syncRows(env)
	if err := p.run(n); err != nil {
		return m, err
	}
	alone := p.median()
	if err := p.sync(env, n); err != nil {
		return m, err
	}
	next := p.median()
	if m.Checksum, err = c.checksum(context.Background(), 2*int64(n)); err != nil {
		return m, err
	}
	if err := p.run(n); err != nil { // since commits also depend on what was written before
		return m, err
	}
	alone = (alone + p.median()) / 2
	m.Value = p.longest.Seconds()
	m.Metrics = map[string]float64{work.CommitSlower: 100 * (next.Seconds()/alone.Seconds() - 1),
		"µs of a commit alone": float64(alone.Microseconds())}
	return m, nil
}

// sync runs the writer next to live.Sync, once the first copy is made.
func (p *paced) sync(env *harness.Env, n int) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	copied := make(chan struct{}, 1)
	o := &live.Options{Progress: func(s live.Status) {
		p.arrived(s.Timestamp)
		if s.Timestamp > 0 && p.left() == 0 {
			select {
			case copied <- struct{}{}:
			default:
			}
		}
	}}
	var ended sync.WaitGroup
	ended.Go(func() {
		to := live.Target{Cluster: p.client, Partitioning: &byOrderKey, Replicas: 1}
		cancel(live.Sync(ctx, p.store, p.table, to, o))
	})
	wait := func() error {
		select {
		case <-copied:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(startTimeout):
			return fmt.Errorf("%d commits have not arrived after %v", p.left(), startTimeout)
		}
	}
	err := wait()
	if err == nil {
		p.longest = 0
		_, err = env.Clock(func() error { return p.run(n) })
	}
	if err == nil {
		for p.left() > 0 && err == nil {
			err = wait()
		}
	}
	cancel(nil)
	ended.Wait()
	return err
}
