package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
)

// shownTimeline is the page in JSON.
type shownTimeline struct {
	Source   string
	Problems []string
	Dropped  int64
	Job      *struct {
		Event         uint64
		Kind, State   string
		Story         []string
		Before, After *struct {
			RowSets, Height int
			InSVG           int `json:"rowsets_in_svg"`
		}
	}
	Jobs []struct {
		Event       uint64
		Kind, State string
	}
	Shown struct{ Total int }
}

// TestTimelineStepsThroughEveryJob follows the links from the newest job to the oldest and back,
// and compares each job with the event.
func TestTimelineStepsThroughEveryJob(t *testing.T) {
	var ended []compaction.Event
	events := NewEvents()
	v := newVersionedWith(t, 20, func(e compaction.Event) {
		if !e.Begin {
			ended = append(ended, e)
		}
		events.Record(e)
	})
	s := testServer(v.store, Log(events))
	var first shownTimeline
	viewInto(t, s, "/timeline?table=t", &first)
	for i := range ended {
		if e := &ended[len(ended)-1-i]; e.Kind != compaction.Flush && e.Kind != compaction.DeltaFlush {
			if want := first.Jobs[i].Event; first.Job == nil || first.Job.Event != want ||
				first.Job.Kind != string(e.Kind) {
				t.Errorf("the page begins with %+v, want the newest compaction, job %d", first.Job, want)
			}
			break
		}
	}
	steps := 0
	for path := fmt.Sprintf("/timeline?table=t&event=%d", first.Jobs[0].Event); path != ""; steps++ {
		var got shownTimeline
		viewInto(t, s, path, &got)
		want := &ended[len(ended)-1-steps]
		j := got.Job
		if got.Source != "recorded" || got.Shown.Total != len(ended) || j == nil || j.Kind != string(want.Kind) ||
			j.State != "done" || len(j.Story) < 2 ||
			j.Before != nil && j.Before.RowSets != len(want.Before.RowSets) || j.After == nil ||
			j.After.RowSets != len(want.After.RowSets) ||
			j.After.InSVG != j.After.RowSets || j.After.Height != want.After.MaxHeight() {
			t.Fatalf("%s: %+v %+v, want %+v", path, got, j, want)
		}
		page := body(t, get(s, path))
		checkText(t, path, page)
		parse(t, page)
		path = link(page, "prev")
	}
	must.Equal(t, steps, len(ended))
	var kinds shownTimeline
	viewInto(t, s, "/timeline?kind=merge", &kinds)
	for _, j := range kinds.Jobs {
		must.Equal(t, j.Kind, "merge")
	}
	for path, status := range map[string]int{"/timeline?kind=x": 400, "/timeline?event=999": 410,
		"/timeline?event=x": 400, "/timeline?table=none": 404} {
		if r := get(s, path); r.StatusCode != status {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
}

// link returns the first link of a relation.
func link(page, rel string) string {
	_, after, ok := strings.Cut(page, `<a rel="`+rel+`" href="`)
	if !ok {
		return ""
	}
	target, _, _ := strings.Cut(after, `"`)
	return strings.ReplaceAll(target, "&amp;", "&")
}

// TestTimelineWithoutEventsSaysHowToRecordThem requests the page of a store without a listener.
func TestTimelineWithoutEventsSaysHowToRecordThem(t *testing.T) {
	store := openStore(t)
	r := get(testServer(store), "/timeline")
	if text := body(t, r); r.StatusCode != http.StatusOK ||
		!strings.Contains(text, "oribi inspect DIR --events FILE") || !strings.Contains(text, "inspect.NewEvents()") {
		t.Errorf("%s: %s", r.Status, text)
	}
	r = get(testServer(store, Log(NewEvents())), "/timeline")
	if text := body(t, r); r.StatusCode != http.StatusOK || !strings.Contains(text, "No events yet") {
		t.Errorf("%s: %s", r.Status, text)
	}
}

// TestEventsOfAFile reads a log that grows, is damaged, and is replaced.
func TestEventsOfAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events")
	write := func(flag int, text string) {
		t.Helper()
		f := must.Get(os.OpenFile(name, os.O_CREATE|os.O_WRONLY|flag, 0o600))(t)
		_, err := f.WriteString(text)
		must.Do(t, errors.Join(err, f.Close()))
	}
	good := func(job int) string {
		var b bytes.Buffer
		compaction.NewEventLog(&b).Record(compaction.Event{Job: uint64(job), Time: time.Unix(int64(job), 0),
			Kind: compaction.Flush, Table: "t"})
		return b.String()
	}
	write(os.O_TRUNC, good(1)+`{"time":"`+strings.ReplaceAll(hostile, "\n", "")+"\n"+good(2)+good(3)[:20])
	events := must.Get(OpenEvents(name))(t)
	store := openStore(t)
	s := testServer(store, Log(events))
	check := func(jobs int, problems ...string) {
		t.Helper()
		var v shownTimeline
		viewInto(t, s, "/timeline", &v)
		if v.Source != "file" || len(v.Jobs) != jobs || len(v.Problems) != len(problems) {
			t.Fatalf("%+v, want %d jobs, %d problems", v, jobs, len(problems))
		}
		for i, p := range problems {
			must.Contain(t, v.Problems[i], p)
		}
		checkText(t, "/timeline", body(t, get(s, "/timeline")))
	}
	check(2, "events, line 2: ", "the last line has no end")
	write(os.O_APPEND, good(3)[20:]+good(4))
	check(4, "line 2: ")
	write(os.O_APPEND, strings.Repeat("[]\n", 9))
	check(4, "line 2: ", "line 6: ", "line 7: ", "line 8: ", "line 9: ", "5 damaged lines more")
	write(os.O_TRUNC, good(9))
	check(1)
	must.Do(t, os.Remove(name))
	check(1, "events could not be read: no such file")
	must.Do(t, os.Mkdir(name, 0o700))
	check(1, "could not be read: not a regular file")
	must.Fail(t, must.Err(OpenEvents(filepath.Join(name, "none"))), os.ErrNotExist)
}

// TestLongLinesOfEventsAreLeftOut reads a line that is longer than a line may be.
func TestLongLinesOfEventsAreLeftOut(t *testing.T) {
	var log bytes.Buffer
	event := compaction.Event{Job: 1, Kind: compaction.Flush, Table: "t"}
	events := compaction.NewEventLog(&log)
	events.Record(event)
	log.WriteString(`{"why":"` + strings.Repeat("x", lineMost) + "\"}\n")
	events.Record(event)
	e := must.Get(ReadEvents(t.Context(), &log, "log"))(t)
	if k := e.list(); len(k.jobs) != 2 || len(k.problems) != 1 ||
		!strings.Contains(k.problems[0], "line 2: it is longer than 16.0 MiB") {
		t.Errorf("%d jobs, %q", len(k.jobs), k.problems)
	}
}

// TestEventsAreBounded records more jobs than are kept, with layouts that change little, and one
// that is larger than all that is kept.
func TestEventsAreBounded(t *testing.T) {
	const sets = 10_000
	layout := compaction.Layout{Table: "t"}
	for i := range sets {
		key := []byte(fmt.Sprintf("key%06d", 10*i))
		layout.RowSets = append(layout.RowSets,
			compaction.RowSetInfo{ID: uint64(i), MinKey: key, MaxKey: append(key[:8:8], '9'), Rows: 1, Bytes: 1 << 20,
				RedoBytes: 1 << 10, UndoBytes: 1 << 12, Redos: 1})
	}
	e := NewEvents()
	const jobs = 250
	for job := range jobs {
		event := compaction.Event{Begin: true, Job: uint64(job + 1), Kind: compaction.Merge, Table: "t", Before: layout}
		e.Record(event)
		event.Begin, event.Inputs = false, layout.RowSets[job*10:job*10+5]
		after := compaction.Layout{Table: "t", RowSets: append([]compaction.RowSetInfo(nil), layout.RowSets...)}
		after.RowSets[job*10].ID = uint64(sets + job)
		event.After, event.Outputs = after, after.RowSets[job*10:job*10+1]
		e.Record(event)
		layout = after
	}
	k := e.list()
	if n := len(k.jobs); n < 200 || e.bytes > eventBytes || k.dropped != int64(jobs-n) {
		t.Errorf("%d jobs of %d bytes, %d dropped", n, e.bytes, k.dropped)
	}
	for i, j := range k.jobs {
		if j.running || len(j.before) != sets || len(j.after) != sets ||
			j.after[j.event.Job*10-10].ID != uint64(sets)+j.event.Job-1 {
			t.Fatalf("job %d is not the event: %d, %d rowsets", i, len(j.before), len(j.after))
		}
	}
	s := testServer(openStore(t), Log(e))
	for _, edit := range []func(*http.Request){func(*http.Request) {}, asJSON} {
		r := get(s, "/timeline", edit)
		if page := body(t, r); r.StatusCode != http.StatusOK || len(page) > maxPageBytes {
			t.Errorf("%s, %d bytes", r.Status, len(page))
		}
	}
	large := compaction.Layout{RowSets: []compaction.RowSetInfo{{MinKey: make([]byte, eventBytes), MaxKey: []byte{1}}}}
	e.Record(compaction.Event{Job: 1000, Kind: compaction.Flush, After: large})
	k = e.list()
	if last := k.jobs[len(k.jobs)-1]; !last.large || last.after != nil || e.bytes > eventBytes {
		t.Errorf("%+v", last)
	}
	for i := range jobsMost + 10 {
		e.Record(compaction.Event{Job: uint64(2000 + i), Kind: compaction.Flush})
	}
	must.Equal(t, len(e.list().jobs), jobsMost)
}

// TestHostileLayoutsOfEvents shows layouts that no store has.
func TestHostileLayoutsOfEvents(t *testing.T) {
	most := int64(1<<63 - 1)
	sets := []compaction.RowSetInfo{
		{ID: 1, MinKey: []byte("b"), MaxKey: []byte("a"), Bytes: most, RedoBytes: most, UndoBytes: most},
		{ID: 1, MinKey: nil, MaxKey: bytes.Repeat([]byte{0xff}, 100_000), Bytes: most, Rows: most},
		{ID: 2, MinKey: []byte(hostile), MaxKey: []byte(hostile), Bytes: most},
		{ID: 3},
	}
	e := NewEvents()
	for _, kind := range []compaction.Kind{compaction.Flush, compaction.Merge, compaction.Stall, compaction.UndoGC} {
		for _, begin := range []bool{true, false} {
			e.Record(compaction.Event{Begin: begin, Job: 7, Kind: kind, Table: hostile, Why: hostile, Inputs: sets,
				Outputs: sets[1:], Before: compaction.Layout{RowSets: sets},
				After: compaction.Layout{RowSets: sets[2:]}, Duration: time.Duration(most),
				Err: errors.New(strings.Repeat(hostile, 1000)), RowsWritten: most, BytesRead: most})
		}
	}
	e.Record(compaction.Event{Job: 8, Kind: compaction.Ingest, Table: "t", Before: compaction.Layout{RowSets: sets},
		After: compaction.Layout{RowSets: sets}, Outputs: sets})
	s := testServer(openStore(t), Log(e))
	for event := range 5 {
		path := fmt.Sprintf("/timeline?event=%d", event+1)
		r := get(s, path)
		page := body(t, r)
		must.Equal(t, r.StatusCode, http.StatusOK, path, r.Status, page)
		checkText(t, path, page)
		parse(t, page)
		decode(t, body(t, get(s, path, asJSON)))
	}
}
