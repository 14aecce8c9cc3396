package tablet

import (
	"sync"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/rowset"
)

// reports sends the events of a table's jobs in the order of their commits, one at a time: the
// layout before a job equals the layout after the previous job, unless that job failed.
//
// A committed job reserves its report with writers blocked, and completes it when it has no lock
// any more: describing a large layout takes a while. Events are sent without any lock, so a
// listener may use the table. An event may be sent by the goroutine of another job, after the job
// that it is about has returned: if an earlier one is just being sent, or is not complete.
type reports struct {
	mu      sync.Mutex
	list    []*report
	sending bool
}

// report is the event of one job.
type report struct {
	before, after []*rowset.State // around its commit; nil when it is complete
	event         compaction.Event
	complete      bool
}

// reserve adds the report of a job that was just committed. The caller calls complete.
func (r *reports) reserve(before, after []*rowset.State) *report {
	p := &report{before: before, after: after}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, p)
	return p
}

func (r *reports) complete(p *report, e compaction.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.event, p.complete = e, true
	p.before, p.after = nil, nil // their memory stores may be large
}

// add adds the event of a job that has committed nothing.
func (r *reports) add(e compaction.Event) { r.complete(r.reserve(nil, nil), e) }

// next removes and returns the first report, if it is complete and no event is being sent. The
// caller sends the event and calls sent.
func (r *reports) next() (e compaction.Event, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sending || len(r.list) == 0 || !r.list[0].complete {
		return e, false
	}
	e, r.sending = r.list[0].event, true
	r.list[0] = nil
	r.list = r.list[1:]
	return e, true
}

func (r *reports) sent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sending = false
}

// sendEvents sends the events of jobs that have ended. No lock of the table is held.
func (t *Tablet) sendEvents() {
	for {
		e, ok := t.reports.next()
		if !ok {
			return
		}
		func() {
			defer t.reports.sent()
			t.opts.Store.Event(e)
		}()
	}
}
