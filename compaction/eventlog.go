package compaction

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/oribi-db/oribi/internal/fault"
)

// maxEventLine is the largest length of a line of an event log, in bytes.
const maxEventLine = 64 << 20

// EventLog writes events as JSON Lines: one object for each event, without blanks. Its method
// Record is a listener:
//
//	events := compaction.NewEventLog(file)
//	store, err := oribi.Open(dir, &oribi.Options{Listener: events.Record})
//	…
//	err = errors.Join(store.Close(), events.Err(), file.Close())
//
// ReadEvents reads the log. Members whose value is zero or empty are left out, except the members
// of a rowset, which are always present:
//
//	time           string  when the job began or ended: RFC 3339, UTC, nanoseconds
//	job            number  Event.Job
//	begin          bool
//	kind           string
//	table, why     string
//	inputs         array   of rowsets
//	outputs        array   of rowsets
//	rows_read, rows_written, bytes_read, bytes_written  number
//	duration_ns    number
//	error          string  text of Event.Err
//	before, after  object  layout: table, rowset_bytes, rowsets
//
// A rowset:
//
//	id                     number
//	min, max               string  encoded keys, inclusive: "0x" and lower-case hex
//	rows, live_rows        number
//	bytes                  number  of all files
//	redos, undos           number  of delta files
//	redo_bytes, undo_bytes number
//
// Numbers are not negative and below 2^63, redos and undos below 2^31. A line has at most 64 MiB.
// For example, the event of a flush that wrote two rows:
//
//	{"time":"2026-11-23T07:00:00.25Z","job":1,"kind":"flush","table":"t","why":"the MemRowSet is flushed",
//	"outputs":[{"id":1,"min":"0x80000001","max":"0x80000002","rows":2,"live_rows":2,"bytes":900,"redos":0,
//	"undos":1,"redo_bytes":0,"undo_bytes":0}],"rows_read":2,"rows_written":2,"bytes_written":900,
//	"duration_ns":1250000,"before":{"table":"t","rowset_bytes":33554432},"after":{…}}
//
// (on one line). An EventLog is safe for concurrent use.
type EventLog struct {
	w io.Writer

	mu   sync.Mutex
	line []byte
	err  error
}

// NewEventLog returns a log that writes to w: one call of Write for each event, with a whole line.
// w may be a file that already contains events.
func NewEventLog(w io.Writer) *EventLog { return &EventLog{w: w} }

// Record writes one event. After a failed write it writes nothing more; Err returns the error.
func (l *EventLog) Record(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	line, err := appendEvent(l.line[:0], &e)
	if err == nil {
		_, err = l.w.Write(line)
	}
	if err != nil {
		l.err = fmt.Errorf("compaction: event log: %w", err)
	}
	if l.line = line; cap(line) > maxKeptLine {
		l.line = nil
	}
}

// maxKeptLine is the largest capacity of a buffer that is kept for the next event, in bytes.
const maxKeptLine = 1 << 20

// Err returns the first error of Record: a failed write, or an event that is too large for a line.
func (l *EventLog) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// ReadEvents returns the events of a log that an EventLog has written. The iteration ends at the
// first error.
//
// Errors: ErrCorrupt, with the line, for text that is not such a log: not an object, a member that
// is unknown, repeated, missing or of the wrong type, an unknown kind, or a line of more than 64
// MiB; io.ErrUnexpectedEOF if the last line has no end, as after a crash of the writer; the errors
// of r. It needs memory for one event, in proportion to its line.
func ReadEvents(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		in := bufio.NewReader(r)
		var line []byte
		for n := 1; ; n++ {
			var err error
			if line, err = readLine(in, line[:0]); err == io.EOF {
				return
			}
			var e Event
			if err == nil {
				err = parseEvent(line, &e)
			}
			if err != nil {
				yield(Event{}, fmt.Errorf("compaction: event log: line %d: %w", n, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// ParseEvent returns the event of one line of a log, without the line's end. Errors: ErrCorrupt, as of
// ReadEvents. It needs memory in proportion to the line.
func ParseEvent(line []byte) (e Event, err error) {
	if err := parseEvent(line, &e); err != nil {
		return Event{}, fmt.Errorf("compaction: event: %w", err)
	}
	return e, nil
}

// readLine appends the next line without its end to dst. Errors: io.EOF at the end of r.
func readLine(r *bufio.Reader, dst []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		dst = append(dst, part...)
		switch {
		case len(dst) > maxEventLine:
			return dst, fault.Corruptf("more than %d bytes", maxEventLine)
		case err == nil:
			return dst[:len(dst)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(dst) > 0:
			return dst, io.ErrUnexpectedEOF
		default:
			return dst, err
		}
	}
}
