package inspect

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/oribi-db/oribi/compaction"
)

var timelinePage = page{pattern: "/timeline", name: "Timeline", template: "timeline.html",
	params: []string{"event", "kind"}, build: buildTimeline}

// Limits of the page.
const (
	jobsShown  = 25        // in the list
	setsShown  = 30        // inputs and outputs of a job
	setsListed = 500       // rowsets of a layout in JSON
	jobPicture = 350 << 10 // bytes of one of the two pictures
	jobApart   = 400       // rowsets up to which it shows each with a link
)

// timelineView is the page of past flushes and compactions.
type timelineView struct {
	// where the events come from: recorded, file, or none
	Source   string   `json:"source"`
	Table    string   `json:"table,omitempty"` // the page shows only this table's events
	Kind     string   `json:"kind,omitempty"`  // and of this kind
	Problems []string `json:"problems"`        // what could not be read
	Dropped  int64    `json:"dropped"`         // older jobs that are no longer kept
	// the selected one; without the parameter "event", the newest compaction that has ended
	Job   *jobDetail `json:"job,omitempty"`
	Jobs  []jobRow   `json:"jobs"`  // newest first
	Shown pager      `json:"shown"` // which of all jobs those are

	Kinds []crumb `json:"-"`
}

// jobRow is a job in the list.
type jobRow struct {
	Number       uint64 `json:"event"` // number of the job, from 1
	Time         string `json:"time"`  // when it ended or, if it runs, began; RFC 3339, UTC
	Kind         string `json:"kind"`
	Name         string `json:"-"` // of the kind, for people
	Table        string `json:"table"`
	Why          string `json:"why"`
	State        string `json:"state"` // done, failed, running: without an end, perhaps because the program ended
	Error        string `json:"error,omitempty"`
	Inputs       int    `json:"inputs"`
	Outputs      int    `json:"outputs"`
	BytesRead    int64  `json:"bytes_read"`
	BytesWritten int64  `json:"bytes_written"`
	Nanoseconds  int64  `json:"ns"`

	Current bool   `json:"-"`
	URL     string `json:"-"`
}

// Duration returns the time that the job took.
func (r *jobRow) Duration() time.Duration { return time.Duration(r.Nanoseconds) }

// Clock returns the time for people.
func (r *jobRow) Clock() string {
	t, err := time.Parse(time.RFC3339Nano, r.Time)
	if err != nil {
		return r.Time
	}
	return t.Format("2006-01-02 15:04:05.000")
}

// jobDetail is one job with the layout before and after it.
type jobDetail struct {
	jobRow
	Story       []string    `json:"story"` // what it did, in sentences
	RowsRead    int64       `json:"rows_read"`
	RowsWritten int64       `json:"rows_written"`
	InputSets   []setView   `json:"input_rowsets"` // the first of them
	OutputSets  []setView   `json:"output_rowsets"`
	Before      *layoutView `json:"before,omitempty"`
	After       *layoutView `json:"after,omitempty"`

	OlderURL, NewerURL string `json:"-"`
}

// setView is a rowset.
type setView struct {
	ID        uint64  `json:"id"`
	First     string  `json:"first"` // key, as text
	Last      string  `json:"last"`
	From      float64 `json:"from,omitempty"` // the share of the table's data below its keys
	To        float64 `json:"to,omitempty"`   // and up to them
	Rows      int64   `json:"rows"`
	Bytes     int64   `json:"bytes"`
	RedoBytes int64   `json:"redo_bytes"`
	UndoBytes int64   `json:"undo_bytes"`

	URL string `json:"-"`
}

// layoutView is a layout of the table.
type layoutView struct {
	RowSets   int       `json:"rowsets"`
	Bytes     int64     `json:"bytes"`
	RedoBytes int64     `json:"redo_bytes"`
	UndoBytes int64     `json:"undo_bytes"`
	Height    int       `json:"height"`         // rowsets over one key, at most
	Depth     float64   `json:"depth"`          // rowsets over one key, on average
	List      []setView `json:"rowset_list"`    // the first of them, by key
	Drawn     int       `json:"rowsets_in_svg"` // that the picture shows

	Picture template.HTML `json:"-"`
}

func buildTimeline(ctx context.Context, s *server, q *query) (any, error) {
	v := &timelineView{Source: "none", Kind: q.Text("kind"), Problems: []string{}, Jobs: []jobRow{}}
	if q.Table != nil {
		v.Table = q.Table.Name()
	}
	if s.o.events == nil {
		return v, nil
	}
	all := s.o.events.list()
	if v.Source = "recorded"; all.file {
		v.Source = "file"
	}
	v.Dropped, v.Problems = all.dropped, append(v.Problems, all.problems...)
	kinds, jobs, err := v.choose(all.jobs)
	if err != nil {
		return nil, err
	}
	for _, kind := range append([]string{""}, kinds...) {
		name := "all"
		if kind != "" {
			name = kindName(compaction.Kind(kind))
		}
		v.Kinds = append(v.Kinds, crumb{name,
			s.address("/timeline", q.With("kind", kind, "event", "", "page", "")), kind == v.Kind})
	}
	at, err := selected(q, jobs)
	if err != nil {
		return nil, err
	}
	var from, to int
	if q.Text("page") == "" && at >= 0 {
		q.Page = at / jobsShown // the part of the list with the selected job
	}
	v.Shown, from, to = s.pageOf(q, len(jobs), jobsShown)
	for i, j := range jobs[from:to] {
		row := s.jobRow(q, j)
		row.Current = from+i == at
		v.Jobs = append(v.Jobs, row)
	}
	if at >= 0 {
		v.Job, err = s.jobDetail(q, jobs, at)
	}
	return v, err
}

// choose returns the jobs that the page shows, newest first, and the kinds of all jobs of the
// table.
func (v *timelineView) choose(all []*job) (kinds []string, jobs []*job, err error) {
	for _, j := range slices.Backward(all) {
		if v.Table != "" && j.event.Table != v.Table {
			continue
		}
		kind := string(j.event.Kind)
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		if v.Kind == "" || kind == v.Kind {
			jobs = append(jobs, j)
		}
	}
	slices.Sort(kinds)
	if kindNames[compaction.Kind(v.Kind)] == "" && v.Kind != "" {
		return nil, nil, badRequest("kind: there is no kind %q.", cut(v.Kind, 40))
	}
	return kinds, jobs, nil
}

// selected returns the index of the job that the page shows in detail, or −1.
func selected(q *query, jobs []*job) (int, error) {
	if q.Text("event") == "" {
		at := slices.IndexFunc(jobs, func(j *job) bool { return !j.running && compacts(j.event.Kind) })
		if at < 0 {
			at = slices.IndexFunc(jobs, func(j *job) bool { return !j.running && j.event.Kind != compaction.Stall })
		}
		if at < 0 && len(jobs) > 0 {
			at = 0
		}
		return at, nil
	}
	number, err := q.Number("event")
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(jobs, func(j *job) bool { return j.number == number })
	if at < 0 {
		return 0, &problem{status: 410,
			text: fmt.Sprintf("Job %d is not there: older ones are dropped, and the log may have been replaced.",
				number), hint: "Begin at the timeline's newest job."}
	}
	return at, nil
}

// compacts reports whether jobs of a kind rewrite files.
func compacts(kind compaction.Kind) bool {
	switch kind {
	case compaction.Merge, compaction.MinorDelta, compaction.MajorDelta, compaction.Recompress:
		return true
	}
	return false
}

// kindNames are the kinds for people.
var kindNames = map[compaction.Kind]string{
	compaction.Flush: "flush", compaction.DeltaFlush: "flush of changes", compaction.Merge: "merging compaction",
	compaction.MinorDelta: "minor delta compaction",
	compaction.MajorDelta: "major delta compaction", compaction.Recompress: "recompression",
	compaction.UndoGC: "removal of old history",
	compaction.Ingest: "ingest", compaction.Stall: "wait for memory",
}

// kindName returns the name of a kind for people.
func kindName(kind compaction.Kind) string {
	return cmp.Or(kindNames[kind], string(kind))
}
