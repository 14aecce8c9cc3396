package wal

import (
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/lsn"
)

// EntryKind is the kind of an Entry: which part of a segment Walk found.
type EntryKind uint8

// Kinds of entries.
const (
	EntrySegment EntryKind = iota // the header of a segment
	EntryRecord                   // a complete record
	EntryFooter                   // the footer of a sealed segment
	EntryTail                     // what a crash left at the end of the log, or zeros for later records
	EntryDamage                   // bytes that no writer leaves, not even after a crash
)

// Entry is one part of a segment.
type Entry struct {
	Kind    EntryKind
	File    string  // name of the segment
	Offset  int64   // of its first byte in the file
	Bytes   int64   // of the file that it takes; 0 where a bit was repaired
	LSN     lsn.LSN // of a segment the first, of a record its own, of a footer the last
	Frames  int64   // of a record its own, of a footer all of the segment
	Durable lsn.LSN // of a footer: the highest that was durable when it was written // inclusive
	Header  SegmentHeader
	Payload []byte // of a record, valid during the call
	Problem string // of a tail or damage: why the bytes are neither record nor footer
}

// SegmentHeader has the fields of a segment's header, except for its first LSN, which is Entry.LSN.
type SegmentHeader struct {
	Instance [16]byte
	Number   uint64
	Previous uint64 // number of the predecessor; 0 = none
}

// Walk calls fn with each part of each segment, oldest first, needed or not. It writes nothing.
// After damage it continues with the next frame or footer that is intact, so it finds records that
// Replay refuses to read. It takes the instance from each segment. The instance in o is used only
// to repair a flipped bit of a header.
//
// An error of fn ends the walk and is returned. Walk also fails if the directory cannot be listed.
// A file that cannot be read is reported as damage.
func Walk(o Options, fn func(*Entry) error) error { return walk(o, false, fn) }

// WalkAll is like Walk, and also finds the frames of segments with a damaged header, if they belong
// to the instance in o.
func WalkAll(o Options, fn func(*Entry) error) error { return walk(o, true, fn) }

func walk(o Options, all bool, fn func(*Entry) error) error {
	o, err := o.filled()
	if err != nil {
		return err
	}
	segs, err := list(&o)
	if err != nil {
		return err
	}
	for i := range segs {
		w := walker{o: o, seg: &segs[i], newest: i == len(segs)-1, fn: fn, all: all}
		if i == len(segs)-2 {
			w.next = &segs[i+1]
		}
		if err := w.walk(); err != nil {
			return err
		}
	}
	return nil
}

// walker walks one segment.
type walker struct {
	o      Options
	seg    *segment
	newest bool
	next   *segment // the newest, if this is the one before
	fn     func(*Entry) error
	stop   error // of fn
	broken bool  // damage is before the next part: the chain hash is not known

	all bool // frames after a damaged header count
}

func (w *walker) give(e *Entry) error {
	e.File = w.seg.name
	w.stop = w.fn(e)
	return w.stop
}

// open reports whether the segment may lack its footer, or a part of its end: it is the newest, or
// the one before and no record of the newest was durable, which would follow LSN next.
func (w *walker) open(next lsn.LSN) bool {
	if w.next == nil {
		return w.newest
	}
	synced, err := w.next.synced(&w.o, next)
	return err == nil && !synced
}

// walk returns the error of fn.
func (w *walker) walk() error {
	if err := w.parts(); err != nil && w.stop == nil {
		return w.give(&Entry{Kind: EntryDamage, Problem: err.Error()})
	}
	return w.stop
}

func (w *walker) parts() error {
	f, err := w.o.FS.Open(w.o.path(w.seg.name), false)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	r := &reader{name: w.seg.name, number: w.seg.number, win: window{f: f, size: size}}
	b, err := r.read(0, headerLen)
	if err != nil {
		return err
	}
	h, problem, err := parseHeader(b)
	if problem != "" {
		if repaired, ok := w.seg.repairHeader(b, w.o.Instance); ok {
			h, problem = repaired, ""
			r.flips = w.seg.flips
		}
	}
	switch {
	case problem != "" && w.newest && size <= headerLen:
		return w.give(&Entry{Kind: EntryTail, Bytes: size, Problem: problem})
	case err != nil:
		problem = err.Error()
	case problem == "" && h.number != w.seg.number:
		problem = fmt.Sprintf("segment %d under the name of segment %d", h.number, w.seg.number)
	}
	if problem != "" && w.all && err == nil {
		r.seed, r.at = seedCRC(w.o.Instance), border{off: headerLen - alignment}
		if err = w.resume(r, &damage{r.name, 0, problem, true}); err != nil {
			return noEOF(err)
		}
		return w.records(r)
	}
	if problem != "" { // the seed of the checksums is not known: no frame can be checked
		return w.give(&Entry{Kind: EntryDamage, Bytes: size, Problem: problem})
	}
	r.seed = seedCRC(h.instance)
	r.at = border{off: headerLen, next: h.first, chain: xxh3.Hash(h.encode())}
	err = w.give(&Entry{Kind: EntrySegment, Bytes: headerLen, LSN: h.first,
		Header: SegmentHeader{Instance: h.instance, Number: h.number, Previous: h.prev.number}})
	for i := 0; i < len(r.flips) && err == nil; i++ {
		err = w.flip(&r.flips[i])
	}
	if err != nil {
		return noEOF(err)
	}
	return w.records(r)
}

// records gives all parts from r.at on.
func (w *walker) records(r *reader) (err error) {
	for err == nil {
		err = w.record(r)
	}
	return noEOF(err)
}

func noEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// record gives the next record, or what is there instead. It returns io.EOF after the last part.
func (w *walker) record(r *reader) error {
	if w.broken {
		b, err := r.read(r.at.off, footerLen)
		if err != nil {
			return err
		}
		if f, ok := parseFooter(b, r.number, r.seed); ok {
			r.at = border{off: r.at.off, next: f.last + 1, chain: f.chain, frames: f.frames}
		}
	}
	from, flips := r.at, len(r.flips)
	n, payload, err := r.next()
	for i := flips; i < len(r.flips); i++ {
		if err := w.flip(&r.flips[i]); err != nil {
			return err
		}
	}
	var d *damage
	switch {
	case err == nil:
		return w.give(&Entry{Kind: EntryRecord, Offset: from.off, Bytes: r.at.off - from.off, LSN: n,
			Frames: int64(r.at.frames - from.frames), Payload: payload})
	case err == io.EOF && r.foot != nil:
		f := r.foot
		if err := w.give(&Entry{Kind: EntryFooter, Offset: from.off, Bytes: footerLen, LSN: f.last,
			Durable: f.durable, Frames: int64(f.frames)}); err != nil {
			return err
		}
		if rest := r.win.size - f.bytes; rest > 0 {
			return w.rest(r, f.bytes, fmt.Sprintf("%d zeros after the footer", rest))
		}
		return io.EOF
	case err == io.EOF && !w.open(r.at.next):
		if err := w.give(&Entry{Kind: EntryDamage, Offset: from.off, Problem: "footer is missing"}); err != nil {
			return err
		}
		return io.EOF
	case !errors.As(err, &d):
		return err
	}
	return w.resume(r, d)
}

// flip gives a flipped bit, with which the part that contains it is read.
func (w *walker) flip(f *bitFlip) error {
	return w.give(&Entry{Kind: EntryDamage, Offset: f.off, Problem: f.String()})
}

// rest gives the bytes from off to the end of the file, which are no frames.
func (w *walker) rest(r *reader, off int64, problem string) error {
	kind := EntryDamage
	if w.open(r.at.next) {
		kind = EntryTail
	}
	if err := w.give(&Entry{Kind: kind, Offset: off, Bytes: r.win.size - off, Problem: problem}); err != nil {
		return err
	}
	return io.EOF
}

// resume gives the bytes that are not a record, and sets r to the next intact record or footer.
func (w *walker) resume(r *reader, d *damage) error {
	from := r.at.off
	if !d.certain {
		durable, _, err := r.proof(from)
		if err != nil {
			return err
		}
		if end, err := r.lastByte(from); err != nil {
			return err
		} else if end == from {
			return w.rest(r, from, "zeros for later records")
		}
		if durable < r.at.next && w.open(r.at.next) {
			return w.rest(r, from, d.problem)
		}
	}
	for off := from + alignment; off < r.win.size; off += alignment {
		b, err := r.read(off, frameLen)
		if err != nil {
			return err
		}
		f, problem := parseFrame(b, r.number, r.seed)
		if _, ok := parseFooter(b, r.number, r.seed); !ok && (problem != "" || f.part > 0 || f.lsn < r.at.next) {
			continue
		}
		if err := w.give(&Entry{Kind: EntryDamage, Offset: d.off, Bytes: off - from, Problem: d.problem}); err != nil {
			return err
		}
		r.at = border{off: off, next: f.lsn} // chain and frames come from the footer
		w.broken = true
		return nil
	}
	if err := w.give(&Entry{Kind: EntryDamage, Offset: d.off, Bytes: r.win.size - from,
		Problem: d.problem}); err != nil {
		return err
	}
	return io.EOF
}
