package tablet

import (
	"errors"
	"fmt"
	"time"

	"github.com/oribi-db/oribi/compaction"
)

// announce sends the event that the job begins. The edit has its kind, its reason, and the rowsets
// that it replaces. The job waits for the listener: with its part of the table, and an ingest or an
// alteration also with the gate.
func (j *job) announce() {
	j.number = j.t.opts.Store.NextJob()
	ev := j.edit.event()
	j.t.opts.Store.Event(compaction.Event{Begin: true, Job: j.number, Time: time.Now(), Kind: ev.Kind,
		Table: j.t.Name(), Why: ev.Why,
		Inputs: ev.Inputs, Before: j.t.Info()})
}

var errPanic = errors.New("a panic ended the job")

// recordPanic records a job that was announced and did not come to its end.
func (j *job) recordPanic() {
	if j.number != 0 && !j.recorded {
		j.record(fmt.Errorf("table %q: %w", j.t.Name(), errPanic))
	}
}

// refused returns the event of a merge that cannot be carried out, after it has sent the event that
// the merge begins.
func (t *Tablet) refused(c compaction.Choice, layout compaction.Layout, err error) compaction.Event {
	ev := compaction.Event{Begin: true, Job: t.opts.Store.NextJob(), Time: time.Now(), Kind: compaction.Merge,
		Table: layout.Table, Why: c.Why, Before: layout}
	t.opts.Store.Event(ev)
	ev.Begin, ev.Time, ev.After, ev.Err = false, time.Now(), layout, err
	return ev
}
