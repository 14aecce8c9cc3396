package inspect

import (
	"bytes"
	"errors"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/compaction"
)

// Events keeps the newest events of a store for the page Timeline: what flushes and compactions
// did. Its method Record is a listener.
//
//	events := inspect.NewEvents()
//	store, err := oribi.Open(dir, &oribi.Options{Listener: events.Record})
//	…
//	http.Handle("/oribi/", inspect.Handler(store, inspect.Prefix("/oribi"), inspect.Log(events)))
//
// OpenEvents reads them from a log that compaction.EventLog has written. Events keeps up to 1,000
// jobs in at most about 64 MiB, layouts included; older ones are dropped. It is safe for concurrent
// use.
type Events struct {
	mu      sync.Mutex
	jobs    []*job // by when they ended or, if they run, began
	bytes   int64  // of all jobs
	next    uint64 // number of the next job
	dropped int64  // jobs that are no longer kept
	running map[jobKey]*job
	most    int64 // of bytes

	file *eventFile // nil: events are recorded
}

// Limits of Events.
const (
	jobsMost   = 1000
	eventBytes = 32 << 20 // of jobs; infos that older jobs have brought may take as much again
)

// jobKey identifies a job while it runs.
type jobKey struct {
	table string
	job   uint64
}

// job is a flush, a compaction, an ingest or a stall. It is immutable.
type job struct {
	number        uint64           // from 1, in the order of the beginnings
	event         compaction.Event // without rowsets; the first one if running, else the second
	running       bool             // its second event has not come
	inputs        []*compaction.RowSetInfo
	outputs       []*compaction.RowSetInfo
	before, after []*compaction.RowSetInfo
	large         bool // the rowsets are left out, because they take too much memory
	bytes         int64
}

// NewEvents returns Events without any.
func NewEvents() *Events {
	e := &Events{most: eventBytes}
	e.reset()
	return e
}

// reset removes all jobs.
func (e *Events) reset() {
	e.jobs, e.bytes, e.next, e.dropped, e.running = nil, 0, 1, 0, map[jobKey]*job{}
}

// Record adds an event. It is for oribi.Options.Listener.
func (e *Events) Record(event compaction.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record(event)
}

// record is Record. The caller holds the lock.
func (e *Events) record(event compaction.Event) {
	key := jobKey{event.Table, event.Job}
	j := &job{running: event.Begin}
	if begun := e.running[key]; begun != nil && !event.Begin {
		j.number = begun.number
		e.remove(slices.Index(e.jobs, begun))
	} else {
		j.number = e.next
		e.next++
	}
	delete(e.running, key)
	known := sharing{last: e.layoutOf(event.Table)}
	j.before = known.share(j, event.Before.RowSets)
	known.moveTo(j.before)
	j.inputs = known.share(j, event.Inputs)
	j.after = known.share(j, event.After.RowSets)
	known.moveTo(j.after)
	j.outputs = known.share(j, event.Outputs)
	event.Before.RowSets, event.After.RowSets, event.Inputs, event.Outputs = nil, nil, nil, nil
	if event.Err != nil {
		event.Err = errors.New(firstRunes(event.Err.Error(), errorChars)) // it may refer to anything
	}
	event.Why = firstRunes(event.Why, errorChars)
	j.event = event
	j.bytes += jobBytes + int64(len(event.Table)+len(event.Why)+
		8*(len(j.before)+len(j.after)+len(j.inputs)+len(j.outputs)))
	if j.bytes > e.most/4 {
		j.before, j.after, j.inputs, j.outputs, j.large, j.bytes = nil, nil, nil, nil, true, jobBytes
	}
	e.jobs = append(e.jobs, j)
	e.bytes += j.bytes
	if j.running {
		e.running[key] = j
	}
	for len(e.jobs) > jobsMost || e.bytes > e.most {
		e.remove(0)
		e.dropped++
	}
}

const (
	jobBytes   = 1 << 10 // of a job without rowsets
	errorChars = 2000    // of a text that an event has
)

// remove removes a job.
func (e *Events) remove(i int) {
	j := e.jobs[i]
	e.bytes -= j.bytes
	e.jobs = slices.Delete(e.jobs, i, i+1)
	if key := (jobKey{j.event.Table, j.event.Job}); e.running[key] == j {
		delete(e.running, key)
	}
}

// layoutOf returns the last known rowsets of a table.
func (e *Events) layoutOf(table string) []*compaction.RowSetInfo {
	for _, j := range slices.Backward(e.jobs) {
		if j.event.Table == table && !j.large {
			if !j.running && len(j.after) > 0 {
				return j.after
			}
			if len(j.before) > 0 {
				return j.before
			}
		}
	}
	return nil
}

// sharing finds rowsets in the last known layout of a table, so that layouts share what they have
// in common.
type sharing struct {
	last  []*compaction.RowSetInfo
	index map[uint64]int // by ID; nil until it is made
}

// moveTo makes a layout the last known one, unless it is empty.
func (s *sharing) moveTo(layout []*compaction.RowSetInfo) {
	if len(layout) > 0 && !(len(layout) == len(s.last) && &layout[0] == &s.last[0]) {
		*s = sharing{last: layout}
	}
}

// share returns rowsets of which those that are known are shared. It counts the others as bytes of
// j.
func (s *sharing) share(j *job, sets []compaction.RowSetInfo) []*compaction.RowSetInfo {
	if len(sets) == 0 {
		return nil
	}
	shared, same := make([]*compaction.RowSetInfo, len(sets)), len(sets) == len(s.last)
	next := 0 // where the next rowset is most likely
	for i := range sets {
		at := s.find(sets[i].ID, next)
		if at >= 0 && sameInfo(s.last[at], &sets[i]) {
			shared[i], next = s.last[at], at+1
			same = same && at == i
			continue
		}
		info := sets[i]
		info.MinKey, info.MaxKey = bytes.Clone(info.MinKey), bytes.Clone(info.MaxKey)
		shared[i], same = &info, false
		j.bytes += infoBytes + int64(len(info.MinKey)+len(info.MaxKey))
	}
	if same {
		return s.last
	}
	return shared
}

// find returns the index of a rowset in the last known layout, -1 if it is not there.
func (s *sharing) find(id uint64, next int) int {
	if next < len(s.last) && s.last[next].ID == id {
		return next
	}
	if s.index == nil {
		s.index = make(map[uint64]int, len(s.last))
		for i, r := range s.last {
			s.index[r.ID] = i
		}
	}
	if at, ok := s.index[id]; ok {
		return at
	}
	return -1
}

const infoBytes = 128 // of a RowSetInfo without keys

func sameInfo(a, b *compaction.RowSetInfo) bool {
	return bytes.Equal(a.MinKey, b.MinKey) && bytes.Equal(a.MaxKey, b.MaxKey) &&
		a.Rows == b.Rows && a.LiveRows == b.LiveRows &&
		a.Bytes == b.Bytes && a.Redos == b.Redos && a.Undos == b.Undos &&
		a.RedoBytes == b.RedoBytes && a.UndoBytes == b.UndoBytes
}

// layout returns the layout of some rowsets.
func (j *job) layout(sets []*compaction.RowSetInfo) compaction.Layout {
	l := compaction.Layout{Table: j.event.Table, RowSetBytes: j.event.Before.RowSetBytes,
		RowSets: make([]compaction.RowSetInfo, len(sets))}
	for i, r := range sets {
		l.RowSets[i] = *r
	}
	return l
}

// kept is the state of Events that a page shows.
type kept struct {
	jobs     []*job
	dropped  int64
	file     bool // they come from a file
	problems []string
}

// list returns the jobs, oldest first, after it has read what was appended to the file.
func (e *Events) list() kept {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := kept{file: e.file != nil}
	if k.file {
		e.file.read(e, appendedMost)
		k.problems = e.file.problems()
	}
	k.jobs, k.dropped = slices.Clone(e.jobs), e.dropped
	return k
}
