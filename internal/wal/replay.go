package wal

import (
	"errors"
	"fmt"
	"io"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
)

// Report describes the log as replay found it. Repair repairs all of the faults in it.
type Report struct {
	Clean bool // as Close leaves a log: sealed, or without a record in its newest segment
	// Frames counts the good frames in the segments that are needed. The frames of a torn tail are
	// not counted.
	Frames  int64
	Records int64 // in these frames
	Bytes   int64 // of these segments, headers and footers included

	TornBytes    int64  // length of the torn tail
	TornFile     string // name of the segment that has it; Repair keeps the tail as .torn under the same number
	SpareBytes   int64  // zeros at the end that a killed writer had written ahead; Repair cuts them off
	RepairedBits int64  // single flipped bits that were repaired, each confirmed by a hash
	Leftovers    int    // unused files: segments entirely below logStart, a newest file without a header
}

// Tail is the end of the log. It has no open file, so a reader need not close it.
type Tail struct {
	o      Options
	plan   plan
	sealed []sealedSegment // live ones but the newest
	full   *fullTail       // the one before the newest; nil if it is durable
	newest segment
	at     border  // in newest: after its last good record
	foot   *footer // of newest, if it is sealed
	flips  []bitFlip
	report Report
	used   bool

	stopped bool // by ErrStop
}

// ErrStop is the error with which the function of Replay ends the log before a record.
var ErrStop = errors.New("the log ends before this record")

// fullTail is the segment before the newest. If no frame of the newest says that its first record
// was durable, the process may have been killed before it had sealed this one, see fullSegment.
type fullTail struct {
	segment
	at   border  // after its last record
	foot *footer // nil = none
}

// sealed reports whether the segment has its footer, and nothing after it.
func (f *fullTail) sealed() bool { return f.foot != nil && f.foot.bytes == f.size }

// sealedSegment is a segment that Release may remove.
type sealedSegment struct {
	name  string
	last  lsn.LSN
	bytes int64
}

// Replay reads the log and writes nothing. It calls fn, in the order of LSNs, for each record from
// logStart on; payload is valid during the call. Replay stops at the first error of fn and returns
// it as it is. If the error is ErrStop, Replay returns nil, and a Tail as of a log that ends before
// this record. That Tail cannot be repaired.
//
// logStart is the lowest LSN that is needed, 0 or 1 for all. Segments entirely below it are
// leftovers and are skipped, whatever gaps are between them. From logStart on no LSN may be
// missing, and the log must reach at least to logStart-1: a caller that raises logStart has synced
// that far before.
//
// It keeps one record, or a window of 256 KiB, in memory. Errors: ErrCorrupt, ErrUnsupported. A
// torn tail is no error; see Report. Source: design, "Log and replay".
func Replay(o Options, logStart lsn.LSN, fn func(lsn lsn.LSN, payload []byte) error) (*Tail, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	logStart = max(logStart, 1)
	segs, err := survey(&o)
	if err != nil {
		return nil, err
	}
	t := &Tail{o: o}
	if t.plan, err = choose(segs, logStart); err != nil {
		return nil, err
	}
	for i := range t.plan.live {
		if i > 0 {
			if ok, err := t.follow(&t.plan.live[i]); err != nil {
				return nil, err
			} else if !ok {
				t.plan.unfinished, t.plan.live = &t.plan.live[i], t.plan.live[:i]
				break
			}
		}
		if err := t.readSegment(i, logStart, fn); err != nil {
			return nil, err
		}
		if t.stopped {
			return t, nil
		}
	}
	if err := t.checkUnfinished(t.at.next); err != nil {
		return nil, err
	}
	if t.at.next < logStart {
		return nil, fault.Corruptf("wal: %s: log ends with LSN %d, but goes on from %d", t.newest.name,
			t.Last(), logStart)
	}
	t.report.Leftovers = len(t.plan.leftovers)
	if t.plan.unfinished != nil {
		t.report.Leftovers++
	}
	t.report.Clean = t.report.TornBytes == 0 && t.report.SpareBytes == 0 && (t.full == nil ||
		t.full.sealed()) && t.plan.unfinished == nil && (t.foot != nil || t.at.frames == 0)
	for _, m := range t.flips {
		o.Logger.Warn("a flipped bit of the log is repaired in memory", "file", m.file, "byte", m.off, "mask", m.mask)
	}
	if !t.report.Clean && !o.Live {
		o.Logger.Warn("log was not closed cleanly", "dir", o.Dir, "last_lsn", t.Last(),
			"torn_bytes", t.report.TornBytes, "torn_file", t.report.TornFile, "unfinished_file",
			t.plan.unfinished != nil)
	}
	return t, nil
}

// checkUnfinished checks that no record of the newest file, if that is not used, was durable: the
// header is synced with the first records, so no crash can leave that. The log ends before LSN
// next.
func (t *Tail) checkUnfinished(next lsn.LSN) error {
	seg := t.plan.unfinished
	if seg == nil {
		return nil
	}
	synced, err := seg.synced(&t.o, next)
	if err != nil {
		return err
	}
	if synced {
		return seg.wrong(0, "%s, but there are frames after it that had been synced", seg.unreadable)
	}
	return nil
}

// follow checks that seg continues where its predecessor, the newest segment of t, ends. ok is
// false if the predecessor is not complete: a power cut took the end of it, and no record of seg
// was durable.
func (t *Tail) follow(seg *segment) (ok bool, err error) {
	end := t.at.off + footerLen
	err = seg.follows(link{number: t.newest.number, length: end, chain: t.at.chain}, t.at.next)
	if err != nil {
		lost, serr := seg.lost(&t.o, t.newest.number, t.foot, t.at.next)
		if lost || serr != nil {
			return false, serr
		}
		return false, err
	}
	t.full = &fullTail{t.newest, t.at, t.foot}
	t.sealed = append(t.sealed, sealedSegment{t.newest.name, t.at.next - 1, end})
	t.report.TornBytes, t.report.TornFile, t.report.SpareBytes = 0, "", 0 // a part of a footer is no tail
	return true, nil
}

// endOf classifies the end of live segment i, where next returned err; see reader.end.
func (t *Tail) endOf(i int, r *reader, err error) error {
	if t.plan.newest(i) {
		return r.end(err, false)
	}
	damaged := r.end(err, true)
	next := t.plan.after(i)
	if damaged == nil || next == nil {
		return damaged
	}
	if synced, err := next.synced(&t.o, r.at.next); err != nil {
		return err
	} else if synced {
		return damaged
	}
	return r.end(err, false)
}

// readSegment replays live segment i, the next in turn, and makes it the newest of t.
func (t *Tail) readSegment(i int, logStart lsn.LSN, fn func(lsn.LSN, []byte) error) error {
	seg := &t.plan.live[i]
	r, err := openReader(&t.o, seg)
	if err != nil {
		return err
	}
	defer r.close()
	for !t.stopped {
		before := r.at
		lsn, payload, err := r.next()
		if err != nil {
			if err = t.endOf(i, r, err); err != nil {
				return err
			}
			break
		}
		if lsn >= logStart {
			if err := fn(lsn, payload); err == ErrStop {
				r.at, t.stopped = before, true
				break
			} else if err != nil {
				return err
			}
		}
		t.report.Records++
	}
	t.newest, t.at, t.foot = *seg, r.at, r.foot
	if r.synced >= seg.head.first {
		t.full = nil
	}
	for _, m := range r.flips {
		if m.off < r.at.off || r.foot != nil { // else it is in the torn tail
			t.flips = append(t.flips, m)
		}
	}
	t.report.RepairedBits = int64(len(t.flips))
	t.report.Frames += int64(r.at.frames)
	end := t.end()
	t.report.Bytes += end
	if seg.size == end || t.stopped {
		return nil
	}
	last, err := r.lastByte(end)
	if err != nil {
		return err
	}
	if t.report.SpareBytes = seg.size - last; last > end {
		t.report.TornBytes, t.report.TornFile = last-end, seg.name
	}
	return nil
}

// end returns where the newest segment ends, including its footer.
func (t *Tail) end() int64 {
	if t.foot != nil {
		return t.foot.bytes
	}
	return t.at.off
}

// errGrown means that a frame has been added since the last look: a Log writes to the segment.
var errGrown = errors.New("the segment is being written")

// end classifies the end of a segment, where next returned err: it returns nil if a writer, or a
// crash, leaves a segment like this. After errGrown r has read one more record, and the caller may
// continue with next.
//
// Without a second look, concurrent appends would be mistaken for damage:
//
//	reader  at LSN 5: zeros                                proof: a frame that records 5 as durable
//	Log                     appends 5, syncs, appends 6
func (r *reader) end(err error, sealed bool) error {
	var d *damage
	switch {
	case err == io.EOF && r.foot == nil && sealed:
		return &damage{r.name, r.at.off, "footer is missing", true}
	case err == io.EOF && sealed && r.foot.bytes != r.win.size:
		return &damage{r.name, r.foot.bytes, fmt.Sprintf("%d zeros after the footer", r.win.size-r.foot.bytes), true}
	case err == io.EOF:
		return nil
	case !errors.As(err, &d) || d.certain || sealed:
		return err
	}
	durable, _, perr := r.proof(r.at.off)
	if perr != nil {
		return perr
	}
	if durable >= r.at.next {
		r.win.forget()
		if _, _, err := r.next(); err == nil {
			return errGrown
		}
		d.problem = fmt.Sprintf("%s, in LSN %d, and LSN %d had been synced", d.problem, r.at.next, durable)
		return d
	}
	return nil
}

// Report returns what replay found.
func (t *Tail) Report() Report { return t.report }

// Spare returns the number of the newest segment and how many zeros a writer had written ahead at
// its end.
func (t *Tail) Spare() (segment string, bytes int64) { return t.newest.name, t.report.SpareBytes }

// Stopped reports whether the function of Replay has ended the log.
func (t *Tail) Stopped() bool { return t.stopped }

// Last returns the highest LSN in the log; without a record, the LSN before the first.
func (t *Tail) Last() lsn.LSN { return t.at.next - 1 }
