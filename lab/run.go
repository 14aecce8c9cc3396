package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/compaction"
)

// table is a table of an engine, as the loop of a run uses it.
type table interface {
	// apply performs an operation. Its changes are in memory until the next flush.
	apply(o op) error
	flush() error
	layout() compaction.Layout // ordered by first key; valid until the next change
	merge(c compaction.Choice) error
	// deltas compacts the delta files of all rowsets, or drops those that history does not need.
	deltas(kind compaction.Kind, why string) error
	// dueDeltas describes the rowsets of which a delta compaction is due, in the order of layout,
	// and compact carries out what the rules choose of them.
	dueDeltas() []compaction.DeltaInfo
	compact(c compaction.DeltaChoice) error
	close() error
}

// Result is the result of a run of a workload with a policy: samples and totals.
type Result struct {
	Workload, Policy string // labels
	Samples          []Sample
	Frames           []Frame    // some of the layouts
	Reads            []ReadCost // of the workload versions
	WrittenByFlushes int64      // bytes
	events           bytes.Buffer
	log              *compaction.EventLog // writes to events
}

// Table returns the name of the run in events.jsonl: the labels of the workload and of the policy.
func (r *Result) Table() string { return r.Workload + "/" + r.Policy }

// Frame is the layout at one point of a run, after the merges.
type Frame struct {
	Operations int64 // as in Sample
	Layout     compaction.Layout
}

// newFrame returns a frame with a copy of a layout.
func newFrame(operations int64, l compaction.Layout) Frame {
	return Frame{operations, compaction.Layout{Table: l.Table, RowSetBytes: l.RowSetBytes,
		RowSets: slices.Clone(l.RowSets)}}
}

// How much of a run is recorded.
const (
	maxSamples = 200
	maxFrames  = 12
)

// Results runs the experiments of a spec, several at once, and returns what they measured: for each
// workload, each policy. progress, if it is not nil, is called with the number of operations done,
// of all operations, by one goroutine at a time.
func Results(ctx context.Context, spec *Spec, progress func(done, of int64)) ([]*Result, error) {
	s := *spec
	s.fill()
	if err := s.check(); err != nil {
		return nil, err
	}
	var runs []*experiment
	of := int64(0)
	for i := range s.Workloads {
		source, err := s.Workloads[i].source()
		if err != nil {
			return nil, err
		}
		for k := range s.Policies {
			policy, err := s.Policies[k].policy()
			if err != nil {
				return nil, err
			}
			of += source.steps()
			runs = append(runs, &experiment{spec: &s, workload: &s.Workloads[i], source: source, policy: policy,
				budget: int64(s.Policies[k].Budget),
				result: &Result{Workload: s.Workloads[i].Label, Policy: s.Policies[k].Label}})
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		mu      sync.Mutex
		done    int64
		workers sync.WaitGroup
	)
	step := func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		if done += n; progress != nil {
			progress(done, of)
		}
	}
	next := make(chan *experiment)
	for range min(len(runs), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for x := range next {
				if err := x.run(ctx, step); err != nil {
					cancel(fmt.Errorf("workload %s, policy %s: %w", x.result.Workload, x.result.Policy, err))
				}
			}
		})
	}
	for _, x := range runs {
		next <- x
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	results := make([]*Result, len(runs))
	for i, x := range runs {
		results[i] = x.result
	}
	return results, nil
}

// experiment is one run.
type experiment struct {
	spec     *Spec
	workload *Workload
	source   source
	policy   compaction.Policy
	budget   int64
	result   *Result

	table   table
	step    int64 // operations, or merges of a replayed layout
	written int64 // by all
	flushed int64 // by flushes
	merges  int64
	credit  float64                 // bytes that merges may still write
	recent  [][]byte                // keys of the last operations, a ring
	last    []compaction.RowSetInfo // of the last merge
	perRow  float64                 // bytes of a row's base data when it is flushed, 0 = not known

	flushes    int // so far
	every      int // flushes between two samples
	frameEvery int // samples between two frames
	samples    int // so far
}

// open makes the table of the experiment.
func (x *experiment) open(ctx context.Context) error {
	if x.spec.Engine == Real {
		dir, err := os.MkdirTemp("", "oribi-lab-")
		if err != nil {
			return err
		}
		x.table, err = openReal(ctx, x.spec, x.workload, dir, x.observe)
		if err != nil {
			os.RemoveAll(dir)
		}
		return err
	}
	sim := newSimulation(x.spec, x.workload, x.observe)
	x.source.prepare(sim)
	x.table = sim
	return nil
}

// observe counts what a flush or compaction has written.
func (x *experiment) observe(e compaction.Event) {
	if e.Begin {
		return
	}
	x.written += e.BytesWritten
	switch e.Kind {
	case compaction.Flush, compaction.DeltaFlush, compaction.Ingest:
		x.flushed += e.BytesWritten
		x.credit += x.spec.RewriteRatio * float64(e.BytesWritten)
	case compaction.Merge:
		x.merges++
		x.credit -= float64(e.BytesWritten)
		x.last = e.Outputs
	}
	e.Table = x.result.Table()
	e.Before, e.After = compaction.Layout{}, compaction.Layout{} // the inputs and outputs say enough
	x.result.log.Record(e)
}

func (x *experiment) run(ctx context.Context, done func(n int64)) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	x.every, x.frameEvery = 1, 1
	x.result.log = compaction.NewEventLog(&x.result.events)
	if err := x.open(ctx); err != nil {
		return err
	}
	defer func() {
		if closed := x.table.close(); err == nil {
			err = closed
		}
	}()
	if err = x.source.run(ctx, x, done); err != nil {
		return err
	}
	x.finish()
	return x.result.log.Err()
}

// flush flushes and compacts.
func (x *experiment) flush(ctx context.Context) error {
	if err := x.table.flush(); err != nil {
		return err
	}
	if x.perRow == 0 {
		x.perRow = basePerRow(x.table.layout())
	}
	return x.compactAndSample(ctx)
}

// compactAndSample runs the compactions that are due after a flush, and takes a sample after every
// x.every-th flush.
func (x *experiment) compactAndSample(ctx context.Context) error {
	if err := x.maintain(ctx); err != nil {
		return err
	}
	if x.flushes++; x.flushes%x.every == 0 {
		x.sample()
	}
	return nil
}

// basePerRow returns the bytes of base data per row of a layout; 0 without rows.
func basePerRow(l compaction.Layout) float64 {
	var n, rows int64
	for _, r := range l.RowSets {
		n += r.Bytes - r.RedoBytes - r.UndoBytes
		rows += r.Rows
	}
	if rows == 0 {
		return 0
	}
	return float64(n) / float64(rows)
}

// mergeAll merges what the policy picks, at most so many times.
func (x *experiment) mergeAll(ctx context.Context, most int64) error {
	m := merging{x: x}
	for range most {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := m.pick()
		if len(c.RowSets) == 0 {
			return nil
		}
		if err := m.merge(c); err != nil {
			return err
		}
	}
	return nil
}

// merging is merges until the policy picks nothing or the bytes are used up. It also ends after a
// merge only of rowsets that it has written itself, unless that merge has left fewer rowsets or
// less depth: otherwise some policies would never end.
type merging struct {
	x    *experiment
	own  map[uint64]bool
	over bool
}

// pick returns what the policy merges next, none at the end.
func (m *merging) pick() compaction.Choice {
	x := m.x
	if m.over || x.spec.RewriteRatio > 0 && x.credit <= 0 {
		return compaction.Choice{}
	}
	return x.policy.Pick(x.table.layout(), x.budget)
}

func (m *merging) merge(c compaction.Choice) error {
	x := m.x
	if m.own == nil {
		m.own = map[uint64]bool{}
	}
	again := !slices.ContainsFunc(c.RowSets, func(id uint64) bool { return !m.own[id] })
	sets, before := len(x.table.layout().RowSets), 0.0
	if again {
		before = depth(x.table.layout())
	}
	if err := x.table.merge(c); err != nil {
		return err
	}
	for _, r := range x.last {
		m.own[r.ID] = true
	}
	after := x.table.layout()
	m.over = again && len(after.RowSets) >= sets && depth(after) >= before-1e-9
	return nil
}

func depth(l compaction.Layout) (d float64) {
	for _, span := range compaction.Spans(l) {
		d += span.Width()
	}
	return d
}

// sample measures the table. If there are twice as many samples or frames as needed, it drops every
// second one, and from then on takes half as many.
func (x *experiment) sample() {
	l := x.table.layout()
	s := measure(l, x.recent)
	s.Operations, s.WrittenBytes, s.Merges = x.step, x.written, x.merges
	s.WriteAmplification = ratio(x.written, x.flushed)
	if live := x.perRow * float64(s.LiveRows); live > 0 {
		s.SpaceAmplification = float64(s.Bytes) / live
	} else {
		s.SpaceAmplification = ratio(s.Bytes, x.flushed)
	}
	r := x.result
	r.Samples = append(r.Samples, s)
	if len(r.Samples) >= 2*maxSamples {
		r.Samples = halved(r.Samples)
		x.every *= 2
	}
	if x.samples++; x.samples%x.frameEvery == 0 {
		r.Frames = append(r.Frames, newFrame(x.step, l))
	}
	if len(r.Frames) >= 2*maxFrames {
		r.Frames = halved(r.Frames)
		x.frameEvery *= 2
	}
}

// finish samples the end of the run.
func (x *experiment) finish() {
	r := x.result
	if n := len(r.Samples); n == 0 || r.Samples[n-1].Operations != x.step {
		x.frameEvery = 1
		x.sample()
	}
	if n := len(r.Frames); n == 0 || r.Frames[n-1].Operations != x.step {
		r.Frames = append(r.Frames, newFrame(x.step, x.table.layout()))
	}
	for len(r.Frames) > maxFrames {
		r.Frames = halved(r.Frames)
	}
	r.WrittenByFlushes = x.flushed
}

// halved returns every second element, the last one included.
func halved[T any](list []T) []T {
	var half []T
	for i := len(list) - 1; i >= 0; i -= 2 {
		half = append(half, list[i])
	}
	slices.Reverse(half)
	return half
}

// ratio returns a/b; 1 if b is 0.
func ratio(a, b int64) float64 {
	if b == 0 {
		return 1
	}
	return float64(a) / float64(b)
}
