package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/oribi-db/oribi/lsn"
)

// Verify reads all segments, including leftovers below logStart, and calls finding for each fault:
// file name, byte offset, problem. A torn tail and a newest file without a header are not faults: a
// crash leaves them.
//
// After a fault it continues with the next segment. It may run concurrently with a Log on the same
// directory, and skips segments that Release removes. An error means that the directory cannot be
// read.
func Verify(o Options, logStart lsn.LSN, finding func(file string, off int64, problem string)) error {
	o, err := o.filled()
	if err != nil {
		return err
	}
	segs, err := survey(&o)
	if err != nil {
		return err
	}
	left := segs
	for i := range segs {
		if errors.Is(segs[i].err, fs.ErrNotExist) { // released, and so are all before it
			left = segs[i+1:]
		}
	}
	v := verifier{o: &o, segs: left, logStart: max(logStart, 1), finding: finding}
	v.base = holder(left, v.logStart)
	if v.base < 0 && len(left) < len(segs) { // logStart has risen: exactly the remaining segments are needed
		v.base = 0
	}
	if v.base < 0 {
		finding("", 0, fmt.Sprintf("no segment holds LSN %d, which is needed", v.logStart))
	}
	for i := range left {
		v.segment(i)
	}
	return nil
}

type verifier struct {
	o        *Options
	segs     []segment
	base     int // the first that is needed
	logStart lsn.LSN
	finding  func(file string, off int64, problem string)

	// The link that the current segment must have to its predecessor; none if its number is 0.
	link link
	next lsn.LSN
	foot *footer // of the predecessor; nil = none
	open bool    // the current segment may lack its footer
}

// report calls finding with err, found in s.
func (v *verifier) report(s *segment, err error) {
	var d *damage
	if errors.As(err, &d) {
		v.finding(d.file, d.off, d.problem)
	} else {
		v.finding(s.name, 0, err.Error())
	}
}

// segment checks the i-th segment by itself and against the one before.
func (v *verifier) segment(i int) {
	s, newest := &v.segs[i], i == len(v.segs)-1
	before, next := v.link, v.next
	v.link = link{}
	switch {
	case s.err != nil:
		v.report(s, s.err)
		return
	case s.unreadable != "" && newest:
		t := Tail{o: *v.o, plan: plan{unfinished: s}}
		if err := t.checkUnfinished(next); err != nil {
			v.report(s, err)
		}
		return
	case s.unreadable != "":
		v.finding(s.name, 0, s.unreadable)
		return
	}
	switch {
	case before.number == s.number-1 && before.number > 0:
		if err := v.follows(s, before, next, newest); err != nil {
			v.report(s, err)
		}
	case v.base >= 0 && i > v.base && v.segs[i-1].number != s.number-1:
		v.finding(s.name, 0, fmt.Sprintf("segment %d is missing", s.number-1))
	}
	if err := v.records(i); err != nil && !errors.Is(err, fs.ErrNotExist) {
		v.report(s, err)
	}
}

// follows checks that s continues where its predecessor ends, or was begun after lost records.
func (v *verifier) follows(s *segment, before link, next lsn.LSN, newest bool) error {
	err := s.follows(before, next)
	if err == nil || !newest {
		return err
	}
	lost, serr := s.lost(v.o, before.number, v.foot, next)
	if lost || serr != nil {
		return serr
	}
	return err
}

// there reports whether the flipped bit is still in the file: a record that a Log is writing may
// lack a single bit.
func (m bitFlip) there(r *reader) bool {
	var b [1]byte
	_, err := r.win.f.ReadAt(b[:], m.off)
	return err == nil && b[0] == m.was
}

// flips reports flipped bits. In the newest segment a crash may leave what looks like one, older
// bytes instead of newer ones. There a bit counts only if the segment is sealed, or if a later
// frame records the record as durable; in a header, if there is a frame.
func (v *verifier) flips(r *reader, newest bool) error {
	for _, m := range r.flips {
		if newest && m.off >= r.at.off {
			continue // of the footer
		}
		if newest && !m.there(r) {
			continue
		}
		if newest && r.foot == nil {
			durable, _, err := r.proof(m.off &^ (alignment - 1))
			if err != nil {
				return err
			}
			if durable < m.lsn && (m.off >= headerLen || r.at.frames == 0) {
				continue
			}
		}
		v.finding(m.file, m.off, m.String())
	}
	return nil
}

// shrunk reports whether the file has fewer bytes than when it was opened, but all that were read:
// a Log that seals it cuts off the zeros that it had written ahead. Then r can continue.
func (r *reader) shrunk() bool {
	size, err := r.win.f.Size()
	if err != nil || size >= r.win.size || size < r.at.off {
		return false
	}
	r.win.size = size
	r.win.forget()
	return true
}

// end classifies the end of the i-th segment, see reader.end. It sets v.open if that segment may
// lack its footer.
func (v *verifier) end(i int, r *reader, err error) error {
	if v.open {
		return r.end(err, false)
	}
	damaged := r.end(err, true)
	if damaged == nil || i < len(v.segs)-2 {
		return damaged
	}
	synced, serr := v.segs[i+1].synced(v.o, r.at.next)
	switch {
	case serr != nil:
		return serr
	case !synced:
		v.open = true
		return r.end(err, false)
	case r.looked:
		return damaged
	}
	// A Log may have sealed it since.
	r.looked = true
	if r.win.size, err = r.win.f.Size(); err != nil {
		return err
	}
	r.win.forget()
	return errGrown
}

// records reads all of the i-th segment.
func (v *verifier) records(i int) error {
	s, newest := &v.segs[i], i == len(v.segs)-1
	v.open = newest
	r, err := openReader(v.o, s)
	if err != nil {
		return err
	}
	defer r.close()
	for err == nil {
		for err == nil {
			_, _, err = r.next()
		}
		if err = v.end(i, r, err); err == nil {
			break
		}
		if err == errGrown || v.open && errors.Is(err, io.ErrUnexpectedEOF) && r.shrunk() {
			err = nil
		}
	}
	if len(r.flips) > 0 && !v.open && i == len(v.segs)-2 { // of a footer that was not synced?
		synced, serr := v.segs[i+1].synced(v.o, r.at.next)
		if serr != nil {
			return serr
		}
		v.open = !synced
	}
	if ferr := v.flips(r, v.open); ferr != nil {
		return ferr
	}
	if err != nil {
		return err
	}
	if v.foot = r.foot; r.foot != nil || v.open {
		v.link, v.next = link{s.number, r.at.off + footerLen, r.at.chain}, r.at.next
	}
	if newest && r.at.next < v.logStart {
		v.finding(s.name, r.at.off, fmt.Sprintf("log ends with LSN %d, but goes on from %d", r.at.next-1, v.logStart))
	}
	return nil
}
