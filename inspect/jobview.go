package inspect

import (
	"bytes"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/internal/layoutsvg"
)

// jobRow returns the row of a job in the list.
func (s *server) jobRow(q *query, j *job) jobRow {
	e := &j.event
	r := jobRow{Number: j.number, Time: e.Time.UTC().Format(time.RFC3339Nano), Kind: string(e.Kind),
		Name: kindName(e.Kind), Table: celltext.Printable(cut(e.Table, 200)),
		Why: celltext.Printable(e.Why), State: "done", Inputs: len(j.inputs), Outputs: len(j.outputs),
		BytesRead: e.BytesRead, BytesWritten: e.BytesWritten,
		Nanoseconds: e.Duration.Nanoseconds(),
		URL:         s.address("/timeline", q.With("event", strconv.FormatUint(j.number, 10), "page", ""))}
	switch {
	case j.running:
		r.State = "running"
	case e.Err != nil:
		r.State, r.Error = "failed", celltext.Printable(e.Err.Error())
	}
	return r
}

// jobDetail returns the view of jobs[at].
func (s *server) jobDetail(q *query, jobs []*job, at int) (*jobDetail, error) {
	j := jobs[at]
	v := &jobDetail{jobRow: s.jobRow(q, j), RowsRead: j.event.RowsRead, RowsWritten: j.event.RowsWritten}
	if at+1 < len(jobs) {
		v.OlderURL = s.jobRow(q, jobs[at+1]).URL
	}
	if at > 0 {
		v.NewerURL = s.jobRow(q, jobs[at-1]).URL
	}
	d := s.newDrawing(j)
	for _, r := range j.inputs[:min(len(j.inputs), setsShown)] {
		v.InputSets = append(v.InputSets, d.set(r))
	}
	for _, r := range j.outputs[:min(len(j.outputs), setsShown)] {
		v.OutputSets = append(v.OutputSets, d.set(r))
	}
	var err error
	if len(j.before) > 0 || len(j.after) > 0 {
		if v.Before, err = d.layout(j.before, j.inputs, "read by this job", "-before"); err == nil && !j.running {
			v.After, err = d.layout(j.after, j.outputs, "written by this job", "-after")
		}
	}
	v.Story = story(v, j)
	return v, err
}

// drawing draws the layouts of one job.
type drawing struct {
	s     *server
	job   *job
	table *oribi.Table        // nil: there is no such table any more
	there map[uint64]bool     // its rowsets; those that a later job has replaced have no page
	key   func([]byte) string // text of a key
}

func (s *server) newDrawing(j *job) *drawing {
	d := &drawing{s: s, job: j, key: func(key []byte) string {
		return cut(fmt.Sprintf("0x%x", key[:min(len(key), keyShown)]), keyShown)
	}}
	if t, err := s.store.Table(j.event.Table); err == nil {
		text := celltext.Keys(t.Schema())
		d.table, d.key, d.there = t, func(key []byte) string { return shortKey(text, key) }, map[uint64]bool{}
		for _, m := range t.RowSets() {
			d.there[m.ID] = true
		}
	}
	return d
}

func (d *drawing) set(r *compaction.RowSetInfo) setView {
	v := setView{ID: r.ID, First: d.key(r.MinKey), Last: d.key(r.MaxKey), Rows: r.Rows, Bytes: r.Bytes,
		RedoBytes: r.RedoBytes, UndoBytes: r.UndoBytes}
	v.URL = d.address(r.ID)
	return v
}

// address returns the URL of a rowset's page. It is empty for a rowset that is not in the table any
// more.
func (d *drawing) address(id uint64) string {
	if !d.there[id] {
		return ""
	}
	return d.s.rowSetAddress(d.table, id)
}

// layout returns the view of a layout, in whose picture some rowsets are marked.
func (d *drawing) layout(sets, marked []*compaction.RowSetInfo, mark, suffix string) (*layoutView, error) {
	l := d.job.layout(sets)
	v := &layoutView{RowSets: len(sets), List: []setView{}}
	spans := compaction.Spans(l)
	for i, r := range sets {
		v.Bytes, v.RedoBytes, v.UndoBytes, v.Depth = v.Bytes+r.Bytes, v.RedoBytes+r.RedoBytes,
			v.UndoBytes+r.UndoBytes, v.Depth+spans[i].Width()
		if i < setsListed {
			one := d.set(r)
			one.From, one.To = round(spans[i].From, 6), round(spans[i].To, 6)
			v.List = append(v.List, one)
		}
	}
	v.Depth, v.Height = round(v.Depth, 2), l.MaxHeight()
	if len(sets) == 0 {
		return v, nil
	}
	o := layoutsvg.Options{Marked: mark, Suffix: suffix, Apart: jobApart, Pick: compaction.Choice{RowSets: ids(marked)}}
	var err error
	v.Picture, v.Drawn, err = d.picture(l, o)
	return v, err
}

// picture draws a layout. If that takes too many bytes, it leaves out the parts of deltas, and then
// all rowsets that do not overlap the keys of the job.
func (d *drawing) picture(l compaction.Layout, o layoutsvg.Options) (template.HTML, int, error) {
	for attempt := 0; ; attempt++ {
		text, err := d.draw(l, o)
		if err != nil || len(text) <= jobPicture {
			return text, len(l.RowSets), err
		}
		switch attempt {
		case 0:
			for i := range l.RowSets {
				l.RowSets[i].RedoBytes, l.RowSets[i].UndoBytes = 0, 0
			}
		case 1:
			l.RowSets = d.near(l.RowSets)
		default:
			return "", 0, nil
		}
	}
}

func (d *drawing) draw(l compaction.Layout, o layoutsvg.Options) (template.HTML, error) {
	o.Link = d.address
	if d.table != nil {
		return d.s.picture(d.table, l, o)
	}
	if len(l.RowSets) == 0 {
		return "", nil
	}
	o.Key = d.key
	var b bytes.Buffer
	err := layoutsvg.Embed(&b, l, o)
	return template.HTML(b.String()), err // layoutsvg escapes keys and names
}

// near returns the rowsets that overlap the keys of the job's inputs and outputs.
func (d *drawing) near(sets []compaction.RowSetInfo) []compaction.RowSetInfo {
	var first, last []byte
	for _, r := range append(slices.Clip(d.job.inputs), d.job.outputs...) {
		if first == nil || bytes.Compare(r.MinKey, first) < 0 {
			first = r.MinKey
		}
		if last == nil || bytes.Compare(r.MaxKey, last) > 0 {
			last = r.MaxKey
		}
	}
	return slices.DeleteFunc(slices.Clone(sets), func(r compaction.RowSetInfo) bool {
		return bytes.Compare(r.MaxKey, first) < 0 || bytes.Compare(r.MinKey, last) > 0
	})
}

func ids(sets []*compaction.RowSetInfo) (list []uint64) {
	for _, r := range sets {
		list = append(list, r.ID)
	}
	return list
}

// story returns sentences about the work of a job, and about its effect on the layout.
func story(v *jobDetail, j *job) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	e := &j.event
	switch {
	case j.running && e.Kind == compaction.Stall:
		add("A writer waits for memory.")
	case e.Kind == compaction.Stall:
		add("A writer waited for memory for %s.", duration(e.Duration))
	case j.running:
		add("It has begun and has not ended, or the program ended before.")
	case e.Err != nil:
		add("It failed after %s and changed nothing.", duration(e.Duration))
	default:
		add("%s in %s.", did(j), duration(e.Duration))
	}
	if e.Why != "" {
		add("Why: %s.", strings.TrimSuffix(celltext.Printable(e.Why), "."))
	}
	if e.Err != nil {
		add("Error: %s.", strings.TrimSuffix(v.Error, "."))
	}
	if j.large {
		add("Its rowsets are not shown: the event is too large to keep.")
	}
	if b, a := v.Before, v.After; b != nil && a != nil && e.Err == nil {
		switch {
		case b.Height != a.Height || b.Depth != a.Depth:
			add("Before it, up to %s could have the same key, %.1f on average; after it, up to %d, %.1f on average.",
				plural(b.Height, "rowset"), b.Depth, a.Height, a.Depth)
		default:
			add("As many rowsets as before could have the same key: up to %d, %.1f on average.", a.Height, a.Depth)
		}
		if b.RedoBytes != a.RedoBytes {
			add("Changes that reads have to apply (REDO): %s before, %s after.",
				figures.Size(b.RedoBytes), figures.Size(a.RedoBytes))
		}
		add("The table: %s before, %s after.", figures.Size(b.Bytes), figures.Size(a.Bytes))
	}
	return list
}

// did returns the beginning of a sentence about a job that was committed.
func did(j *job) string {
	e := &j.event
	in, out := plural(len(j.inputs), "rowset"), plural(len(j.outputs), "rowset")
	changed := j.changed()
	read, written := figures.Size(e.BytesRead), figures.Size(e.BytesWritten)
	switch e.Kind {
	case compaction.Flush:
		if changed > 0 {
			return fmt.Sprintf("It wrote %s from memory to %s, and changes to %s, %s in all,",
				plural(e.RowsWritten, "row"),
				plural(len(j.outputs)-changed, "new rowset"), plural(changed, "other"), written)
		}
		return fmt.Sprintf("It wrote %s from memory to %s, %s,", plural(e.RowsWritten, "row"), out, written)
	case compaction.DeltaFlush:
		return fmt.Sprintf("It wrote changes of rows in %s from memory to files, %s,", out, written)
	case compaction.Merge:
		return fmt.Sprintf("It merged %s, of which it read %s, into %s, %s,", in, read, out, written)
	case compaction.MinorDelta:
		return fmt.Sprintf("It merged the files of changes of %s: it read %s and wrote %s", in, read, written)
	case compaction.MajorDelta:
		return fmt.Sprintf("It applied changes to the columns of %s: it read %s and wrote %s", in, read, written)
	case compaction.Recompress:
		return fmt.Sprintf("It rewrote columns of %s to be smaller: it read %s and wrote %s", in, read, written)
	case compaction.UndoGC:
		return fmt.Sprintf("It dropped history that is no longer kept from %s", in)
	case compaction.Ingest:
		return fmt.Sprintf("It added %s in %s, %s,", plural(e.RowsWritten, "row"), out, written)
	}
	return "It ended"
}

// changed returns the number of outputs that existed before.
func (j *job) changed() (n int) {
	before := map[uint64]bool{}
	for _, r := range j.before {
		before[r.ID] = true
	}
	for _, r := range j.outputs {
		if before[r.ID] {
			n++
		}
	}
	return n
}

// layoutOf returns what the template "layout" shows.
func layoutOf(title string, l *layoutView) map[string]any {
	return map[string]any{"Title": title, "Layout": l}
}

// setsOf returns what the template "sets" shows: the first of all rowsets.
func setsOf(title string, sets []setView, all int) map[string]any {
	return map[string]any{"Title": title, "Sets": sets, "More": all - len(sets)}
}
