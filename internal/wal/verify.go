package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/oribi-db/oribi/lsn"
)

// Verify reads all segments, leftovers below logStart too, and tells every fault it finds: file
// name, byte offset, problem. A torn tail and a newest file without a header are none: a crash
// leaves them.
//
// It goes on behind a fault with the next segment. It may run beside a Log on the same directory:
// segments that Release removes meanwhile are passed over. An error tells that the directory cannot
// be read.
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
		if errors.Is(segs[i].err, fs.ErrNotExist) { // released, and so is all before it
			left = segs[i+1:]
		}
	}
	v := verifier{o: &o, segs: left, logStart: max(logStart, 1), finding: finding}
	v.base = holder(left, v.logStart)
	if v.base < 0 && len(left) < len(segs) { // logStart has risen meanwhile: what is left is needed, and no more
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

	// What the segment before leaves for the one under way; none if its number is 0.
	link link
	next lsn.LSN
}

// tell reports err, found in s.
func (v *verifier) tell(s *segment, err error) {
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
		v.tell(s, s.err)
		return
	case s.unreadable != "" && newest:
		t := Tail{o: *v.o, plan: plan{unfinished: s}}
		if err := t.checkUnfinished(); err != nil {
			v.tell(s, err)
		}
		return
	case s.unreadable != "":
		v.finding(s.name, 0, s.unreadable)
		return
	}
	switch {
	case before.number == s.number-1 && before.number > 0:
		if err := s.follows(before, next); err != nil {
			v.tell(s, err)
		}
	case v.base >= 0 && i > v.base && v.segs[i-1].number != s.number-1:
		v.finding(s.name, 0, fmt.Sprintf("segment %d is missing", s.number-1))
	}
	if err := v.records(s, newest); err != nil && !errors.Is(err, fs.ErrNotExist) {
		v.tell(s, err)
	}
}

// there tells whether the flipped bit is in the file still: a record that a Log is writing may lack
// just one.
func (m mend) there(r *reader) bool {
	var b [1]byte
	_, err := r.win.f.ReadAt(b[:], m.off)
	return err == nil && b[0] == m.was
}

// mends tells of flipped bits. In the newest segment a crash may leave what looks like one, older
// bytes in the place of newer ones, so there it counts only if the segment is sealed, or if a later
// frame knew the record to be durable; a header, if there is a frame.
func (v *verifier) mends(r *reader, newest bool) error {
	for _, m := range r.mends {
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

// shrunk tells whether the file has fewer bytes than when it was opened, but all that was read: a
// Log that seals it gives back what it had written ahead. Then r can go on.
func (r *reader) shrunk() bool {
	size, err := r.win.f.Size()
	if err != nil || size >= r.win.size || size < r.at.off {
		return false
	}
	r.win.size = size
	r.win.forget()
	return true
}

// records reads all of s.
func (v *verifier) records(s *segment, newest bool) error {
	r, err := openReader(v.o, s)
	if err != nil {
		return err
	}
	defer r.close()
	for err == nil {
		for err == nil {
			_, _, err = r.next()
		}
		if err = r.end(err, !newest); err == nil {
			break
		}
		if err == errGrown || newest && errors.Is(err, io.ErrUnexpectedEOF) && r.shrunk() {
			err = nil
		}
	}
	if merr := v.mends(r, newest); merr != nil {
		return merr
	}
	if err != nil {
		return err
	}
	if r.foot != nil {
		v.link, v.next = link{s.number, r.foot.bytes, r.foot.chain}, r.at.next
	}
	if newest && r.at.next < v.logStart {
		v.finding(s.name, r.at.off, fmt.Sprintf("log ends with LSN %d, but goes on from %d", r.at.next-1, v.logStart))
	}
	return nil
}
