package compaction

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// flushLine is the example of EventLog's doc comment, with the second layout.
const flushLine = `{"time":"2026-11-23T07:00:00.25Z","job":1,"kind":"flush","table":"t",` +
	`"why":"the MemRowSet is flushed","outputs":[` + flushedRowSet + `],"rows_read":2,"rows_written":2,` +
	`"bytes_written":900,"duration_ns":1250000,"before":{"table":"t","rowset_bytes":33554432},` +
	`"after":{"table":"t","rowset_bytes":33554432,"rowsets":[` + flushedRowSet + `]}}` + "\n"

const flushedRowSet = `{"id":1,"min":"0x80000001","max":"0x80000002","rows":2,"live_rows":2,"bytes":900,` +
	`"redos":0,"undos":1,"redo_bytes":0,"undo_bytes":0}`

func flushEvent() Event {
	r := RowSetInfo{ID: 1, MinKey: []byte{0x80, 0, 0, 1}, MaxKey: []byte{0x80, 0, 0, 2}, Rows: 2, LiveRows: 2,
		Bytes: 900, Undos: 1}
	return Event{Job: 1, Time: time.Date(2026, 11, 23, 7, 0, 0, 250_000_000, time.UTC), Kind: Flush, Table: "t",
		Why:     "the MemRowSet is flushed",
		Outputs: []RowSetInfo{r}, RowsRead: 2, RowsWritten: 2, BytesWritten: 900, Duration: 1250 * time.Microsecond,
		Before: Layout{Table: "t", RowSetBytes: 32 << 20},
		After:  Layout{Table: "t", RowSetBytes: 32 << 20, RowSets: []RowSetInfo{r}}}
}

func logged(t *testing.T, events ...Event) string {
	t.Helper()
	var b strings.Builder
	l := NewEventLog(&b)
	for _, e := range events {
		l.Record(e)
	}
	must.Do(t, l.Err())
	return b.String()
}

// readAll returns the events before the first error, and the error.
func readAll(text string) (events []Event, err error) {
	for e, err := range ReadEvents(strings.NewReader(text)) {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

// sameEvent compares events; of errors only the texts are in a log.
func sameEvent(a, b Event) bool {
	if fmt.Sprint(a.Err) != fmt.Sprint(b.Err) || !a.Time.Equal(b.Time) {
		return false
	}
	a.Err, b.Err, a.Time, b.Time = nil, nil, time.Time{}, time.Time{}
	return reflect.DeepEqual(a, b)
}

func TestEventLogLine(t *testing.T) {
	must.Equal(t, logged(t, flushEvent()), flushLine)
}

func randomEvent(r *rand.Rand) Event {
	texts := []string{"", "t", "a \"b\"\\\n\x00\x1f", "<&>é𝄞", strings.Repeat("x", 300)}
	text := func() string { return texts[r.IntN(len(texts))] }
	number := func() int64 { return []int64{0, 1, r.Int64N(1 << 30), math.MaxInt64}[r.IntN(4)] }
	key := func() []byte {
		k := make([]byte, r.IntN(5))
		for i := range k {
			k[i] = byte(r.Uint32())
		}
		return k
	}
	rowsets := func() (sets []RowSetInfo) {
		for range r.IntN(3) {
			sets = append(sets, RowSetInfo{ID: uint64(number()), MinKey: key(), MaxKey: key(), Rows: number(),
				LiveRows: number(), Bytes: number(),
				Redos: r.IntN(math.MaxInt32), Undos: r.IntN(9), RedoBytes: number(), UndoBytes: number()})
		}
		return sets
	}
	layout := func() Layout { return Layout{Table: text(), RowSetBytes: number(), RowSets: rowsets()} }
	e := Event{Begin: r.IntN(2) == 0, Job: uint64(number()), Time: time.Unix(r.Int64N(4e9), r.Int64N(1e9)),
		Kind: kinds[r.IntN(len(kinds))], Table: text(), Why: text(),
		Inputs: rowsets(), Outputs: rowsets(), RowsRead: number(), RowsWritten: number(), BytesRead: number(),
		BytesWritten: number(),
		Duration:     time.Duration(number()), Before: layout(), After: layout()}
	if r.IntN(2) == 0 {
		e.Err = errors.New(text())
	}
	return e
}

func TestReadEventsReturnsWhatWasRecorded(t *testing.T) {
	r := seedtest.Rand(t)
	var want []Event
	for range 200 {
		want = append(want, randomEvent(r))
	}
	text := logged(t, want[:100]...) + logged(t, want[100:]...) // two sessions of one file
	got := must.Get(readAll(text))(t)
	must.Equal(t, len(got), len(want), "events")
	for i := range want {
		must.Equal(t, sameEvent(got[i], want[i]), true, "event", i, got[i], want[i])
	}
	must.Equal(t, strings.Count(text, "\n"), len(want), "lines")
	for range ReadEvents(strings.NewReader(text)) {
		break
	}
}

func TestReadEventsRefusesWhatIsNoEvent(t *testing.T) {
	short := `{"time":"2026-11-23T07:00:00Z","job":1,"kind":"flush"`
	for _, c := range []struct{ line, want string }{
		{``, `not JSON`},
		{`null`, `<nil>, want "{"`},
		{`[]`, `want "{"`},
		{`{}`, `no member "time"`},
		{`{"job":1,"kind":"flush","time":"yesterday"}`, `time: `},
		{`{"job":1,"kind":"flush","time":"2026-11-23T07:00:00+01:00"}`, `is not a time in UTC`},
		{`{"time":"2026-11-23T07:00:00Z","kind":"flush"}`, `no member "job"`},
		{`{"time":"2026-11-23T07:00:00Z","job":1}`, `no member "kind"`},
		{`{"time":"2026-11-23T07:00:00Z","job":1,"kind":"dance"}`, `unknown kind "dance"`},
		{short + `,"Table":"t"}`, `unknown member "Table"`},
		{short + `,"job":1}`, `member "job" appears twice`},
		{short + `} {}`, `text after the object`},
		{short + `,}`, `not JSON`},
		{short, `not JSON`},
		{short + `,"table":1}`, `table: a number does not fit`},
		{short + `,"table":null}`, `table: <nil> does not fit`},
		{short + `,"begin":"true"}`, `begin: a string does not fit`},
		{short + `,"begin":[true]}`, `begin: [ does not fit`},
		{short + `,"rows_read":true}`, `rows_read: true does not fit`},
		{short + `,"rows_read":-1}`, `rows_read: -1 is not an integer`},
		{short + `,"rows_read":1.0}`, `rows_read: 1.0 is not an integer`},
		{short + `,"rows_read":9223372036854775808}`, `is not an integer from 0 to 2^63-1`},
		{short + `,"inputs":{}}`, `inputs: {, want "["`},
		{short + `,"inputs":[{}]}`, `inputs: rowset 0: no member "id"`},
		{short + `,"inputs":[` + flushedRowSet + `,null]}`, `inputs: rowset 1: <nil>, want "{"`},
		{short + `,"inputs":[` + strings.Replace(flushedRowSet, "0x80000001", "0x8000000A", 1) + `]}`,
			`min: "0x8000000A" is not 0x and lower-case hex`},
		{short + `,"inputs":[` + strings.Replace(flushedRowSet, "0x80000001", "80000001", 1) + `]}`,
			`is not 0x and lower-case hex`},
		{short + `,"inputs":[` + strings.Replace(flushedRowSet, "0x80000001", "0x8", 1) + `]}`, `min: `},
		{short + `,"inputs":[` + strings.Replace(flushedRowSet, `"redos":0`, `"redos":2147483648`, 1) + `]}`,
			`redos: 2147483648 is not below 2^31`},
		{short + `,"before":{"rowsets":[],"depth":1}}`, `before: unknown member "depth"`},
	} {
		events, err := readAll(flushLine + c.line + "\n" + flushLine)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "line 2: ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in line 2", c.line, err, c.want)
		}
		must.Equal(t, len(events), 1, c.line, "events")
	}
	if events, err := readAll(flushLine + flushLine[:50]); len(events) != 1 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("torn end: %d events, %v", len(events), err)
	}
}

// endless is a line without end.
type endless struct{ read int }

func (r *endless) Read(p []byte) (int, error) {
	r.read += len(p)
	return len(p), nil
}

func TestReadEventsRefusesALongLine(t *testing.T) {
	r := new(endless)
	for _, err := range ReadEvents(r) {
		must.Fail(t, err, ErrCorrupt)
	}
	if r.read > maxEventLine+1<<16 {
		t.Errorf("read %d bytes", r.read)
	}
}

// brokenWriter fails from the second write on, which it does in part.
type brokenWriter struct {
	bytes.Buffer
	writes int
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.writes++; w.writes > 1 {
		n, _ := w.Buffer.Write(p[:len(p)/2])
		return n, io.ErrShortWrite
	}
	return w.Buffer.Write(p)
}

func TestEventLogStopsAfterAFailedWrite(t *testing.T) {
	w := new(brokenWriter)
	l := NewEventLog(w)
	for range 4 {
		l.Record(flushEvent())
	}
	must.Equal(t, w.writes, 2, "writes")
	must.Fail(t, l.Err(), io.ErrShortWrite)
	if events, err := readAll(w.String()); len(events) != 1 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// An event that is read can be written, and read again.
func FuzzReadEvents(f *testing.F) {
	f.Add([]byte(flushLine))
	r := rand.New(rand.NewPCG(1, 2))
	for range 4 {
		e := randomEvent(r)
		line, _ := appendEvent(nil, &e)
		f.Add(line)
	}
	fuzztest.Run(f, func(t *testing.T, text []byte) {
		for e, err := range ReadEvents(bytes.NewReader(text)) {
			if err != nil {
				if !errors.Is(err, ErrCorrupt) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%v", err)
				}
				return
			}
			again, err := readAll(logged(t, e))
			if err != nil || len(again) != 1 || !sameEvent(again[0], e) {
				t.Errorf("%+v\nread again: %+v, %v", e, again, err)
			}
		}
	})
}
