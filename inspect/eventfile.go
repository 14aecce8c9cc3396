package inspect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/figures"
)

// Limits of reading a log of events.
const (
	firstMost    = 32 << 20 // bytes that OpenEvents reads, from the end of the file
	appendedMost = 4 << 20  // appended bytes that a page reads
	lineMost     = 16 << 20 // of a line; longer ones are left out
	damageMost   = 5        // damaged lines that a page describes
)

// eventFile reads a log of events, which may grow.
type eventFile struct {
	name  string
	whole bool // it was read to its end, and is not read again

	seen    os.FileInfo // of the file at the last read
	at      int64       // how far it was read
	begin   int64       // where reading began: 0, or within a large file
	line    int         // lines that were read
	partial bool        // there is text after the last line's end
	rest    bool        // there is more to read
	damaged int         // lines that were left out
	damage  []string    // descriptions of the first of them
	failed  error       // of the last read
}

// OpenEvents reads a log of events, which compaction.EventLog has written. The Timeline page reads
// events that are appended later. A log that is replaced by another one or cut is read again from
// its beginning. Of a log of more than 32 MiB only the end is read.
//
// A line that is damaged, or longer than 16 MiB, is left out, and the page says which and why.
// Errors: errors of opening and reading the file.
func OpenEvents(name string) (*Events, error) {
	e := NewEvents()
	e.file = &eventFile{name: name}
	e.file.read(e, firstMost)
	return e, e.file.failed
}

// ReadEvents reads a log of events to its end and keeps the newest events. The page shows name as
// the name of the log. Damaged lines are left out, as by OpenEvents. Errors: errors of r;
// ctx.Err().
func ReadEvents(ctx context.Context, r io.Reader, name string) (*Events, error) {
	e := NewEvents()
	e.file = &eventFile{name: name, whole: true}
	err := e.file.lines(ctx, e, bufio.NewReaderSize(r, 64<<10), math.MaxInt64)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return e, err
}

// read adds the events that were appended, of at most so many bytes of lines. The caller holds the
// lock of e.
func (f *eventFile) read(e *Events, most int64) {
	if f.whole {
		return
	}
	if f.failed = f.readNext(e, most); errors.Is(f.failed, io.EOF) {
		f.failed = nil
	}
}

func (f *eventFile) readNext(e *Events, most int64) error {
	// block.OpenFile refuses what is no regular file; opening a pipe would wait for its other end.
	src, err := block.OpenFile(f.name)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := os.Stat(f.name)
	if err != nil {
		return err
	}
	if f.seen != nil && (!os.SameFile(f.seen, info) || src.Size() < f.at) {
		*f = eventFile{name: f.name}
		e.reset()
	}
	if f.seen == nil && src.Size() > most {
		f.begin = src.Size() - most
		f.at = f.begin
	}
	skip := f.seen == nil && f.begin > 0
	f.seen = info
	in := bufio.NewReaderSize(io.NewSectionReader(src, f.at, src.Size()-f.at), 64<<10)
	if skip { // the line in which reading begins
		_, n, _, err := readEventLine(in)
		if f.at += n; err != nil {
			return err
		}
	}
	return f.lines(context.Background(), e, in, most)
}

// lines adds the events of at most so many bytes of lines. Errors: io.EOF at the end.
func (f *eventFile) lines(ctx context.Context, e *Events, in *bufio.Reader, most int64) error {
	f.partial, f.rest = false, false
	for read := int64(0); ; {
		if read >= most {
			f.rest = true
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		line, n, whole, err := readEventLine(in)
		if err != nil {
			f.partial = n > 0 // the writer may be about to complete it
			return err
		}
		f.at += n
		read += n
		f.line++
		f.add(e, line, whole)
	}
}

// add adds the event of a line.
func (f *eventFile) add(e *Events, line []byte, whole bool) {
	err := fmt.Errorf("it is longer than %s", figures.Size(lineMost))
	var event compaction.Event
	if whole {
		event, err = compaction.ParseEvent(line)
	}
	if err == nil {
		e.record(event)
		return
	}
	if f.damaged++; len(f.damage) < damageMost {
		text := strings.TrimPrefix(err.Error(), "compaction: event: ")
		f.damage = append(f.damage, fmt.Sprintf("line %d%s: %s", f.line, f.origin(),
			firstRunes(celltext.Printable(text), errorChars)))
	}
}

// origin says where lines are counted from.
func (f *eventFile) origin() string {
	if f.begin == 0 {
		return ""
	}
	return fmt.Sprintf(" after byte %d", f.begin)
}

// problems describes what is not shown, and why.
func (f *eventFile) problems() (list []string) {
	name := celltext.Printable(filepath.Base(f.name))
	if f.failed != nil {
		cause := f.failed
		for errors.Unwrap(cause) != nil { // the innermost one has no path
			cause = errors.Unwrap(cause)
		}
		list = append(list, fmt.Sprintf("%s could not be read: %s. The events are those read before.", name,
			celltext.Printable(cause.Error())))
	}
	if f.begin > 0 {
		list = append(list, fmt.Sprintf("%s is large: only the events after byte %d were read.", name, f.begin))
	}
	for _, d := range f.damage {
		list = append(list, fmt.Sprintf("%s, %s. The line is left out.", name, strings.TrimSuffix(d, ".")))
	}
	if n := f.damaged - len(f.damage); n > 0 {
		list = append(list, fmt.Sprintf("%s: %s more left out.", name, plural(n, "damaged line")))
	}
	if f.partial {
		list = append(list, fmt.Sprintf("%s: the last line has no end and is left out until it has.", name))
	}
	if f.rest {
		list = append(list, fmt.Sprintf("%s has grown by more than a page reads at once. Load the page again for the "+
			"newer events.", name))
	}
	return list
}

// readEventLine reads a line, n bytes with its end. If it is longer than a line may be, whole is
// false, and the line is empty. Errors: io.EOF if the line has no end, after n bytes.
func readEventLine(in *bufio.Reader) (line []byte, n int64, whole bool, err error) {
	whole = true
	for {
		part, err := in.ReadSlice('\n')
		n += int64(len(part))
		if whole = whole && len(line)+len(part) <= lineMost; whole {
			line = append(line, part...)
		} else {
			line = nil
		}
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), n, whole, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, n, whole, err
		}
	}
}
