package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
)

// segment is a file of the log as replay found it.
type segment struct {
	name   string
	number uint64
	size   int64
	head   header
	// unreadable says why there is no good header; err is any other fault of the file as a whole.
	unreadable string
	err        error
	flips      []bitFlip // a flipped bit of the header that was repaired
}

// list returns the segments of a directory, by number. It ignores other files.
func list(o *Options) ([]segment, error) {
	names, err := o.FS.List(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Corruptf("wal: the directory is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	var segs []segment
	for _, name := range names {
		if number, ok := parseName(name); ok {
			segs = append(segs, segment{name: name, number: number})
		}
	}
	slices.SortFunc(segs, func(a, b segment) int { return cmp.Compare(a.number, b.number) })
	return segs, nil
}

// survey lists the segments and reads their headers.
func survey(o *Options) ([]segment, error) {
	segs, err := list(o)
	for i := range segs {
		segs[i].inspect(o)
	}
	return segs, err
}

// inspect reads the header.
func (s *segment) inspect(o *Options) {
	s.unreadable, s.err = s.readHeader(o)
	if s.err != nil {
		s.err = fmt.Errorf("wal: %s: %w", s.name, s.err)
	}
}

func (s *segment) readHeader(o *Options) (problem string, err error) {
	f, err := o.FS.Open(o.path(s.name), false)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if s.size, err = f.Size(); err != nil {
		return "", err
	}
	w := window{f: f, size: min(s.size, headerLen)}
	b, err := w.at(0, headerLen)
	if err != nil {
		return "", err
	}
	s.head, problem, err = parseHeader(b)
	if problem != "" {
		if h, ok := s.repairHeader(b, o.Instance); ok {
			s.head, problem = h, ""
		}
	}
	switch {
	case err != nil || problem != "":
	case s.head.instance != o.Instance:
		err = fault.Corruptf("segment of another store, instance %x, want %x", s.head.instance, o.Instance)
	case s.head.number != s.number:
		err = fault.Corruptf("segment %d under the name of segment %d", s.head.number, s.number)
	}
	return problem, err
}

// plan is the use of each segment.
type plan struct {
	leftovers  []segment // entirely below the LSN that is needed
	live       []segment // the rest; not empty
	unfinished *segment  // a newest file without a good header, or begun after records that a power cut took
}

// after returns the file after live segment i, or nil unless exactly one file follows it. Such a
// segment may lack its footer, see fullSegment.
func (p *plan) after(i int) *segment {
	switch rest := p.live[i+1:]; {
	case len(rest) == 0:
		return p.unfinished
	case len(rest) == 1 && p.unfinished == nil:
		return &rest[0]
	}
	return nil
}

// newest reports whether no file was begun after live segment i.
func (p *plan) newest(i int) bool { return i == len(p.live)-1 && p.unfinished == nil }

// synced reports whether a frame in s says that LSN next or a later one was durable.
func (s *segment) synced(o *Options, next lsn.LSN) (bool, error) {
	r, err := openReader(o, s)
	if err != nil {
		return false, err
	}
	defer r.close()
	if r.win.size, err = r.win.f.Size(); err != nil { // a Log may have cut off zeros
		return false, fmt.Errorf("wal: %s: %w", s.name, err)
	}
	durable, found, err := r.proof(0)
	return found && durable >= next, err
}

// choose sorts segments by use. logStart is the lowest LSN that is needed.
//
// The last segment that begins at logStart or below contains it, if any does; all before it are
// leftovers, damaged or not, with gaps between them or without.
//
//	number      1      2   (3)   4        5        6
//	first LSN   1      8         20       31       40
//	logStart                         ^ 25
//	            leftovers        live …
func choose(segs []segment, logStart lsn.LSN) (p plan, err error) {
	if n := len(segs) - 1; n >= 0 && segs[n].unreadable != "" {
		p.unfinished, segs = &segs[n], segs[:n]
	}
	for i := range segs {
		if segs[i].err != nil {
			return p, segs[i].err
		}
	}
	base := holder(segs, logStart)
	if base < 0 {
		return p, fault.Corruptf("wal: no segment holds LSN %d, which is needed", logStart)
	}
	p.leftovers, p.live = segs[:base], segs[base:]
	for _, s := range p.live {
		if s.unreadable != "" {
			return p, s.wrong(0, "%s", s.unreadable)
		}
	}
	return p, nil
}

// holder returns the index of the last segment that begins at lsn or below, or -1 if all segments
// begin above lsn.
func holder(segs []segment, lsn lsn.LSN) int {
	for i := len(segs) - 1; i >= 0; i-- {
		if s := &segs[i]; s.err == nil && s.unreadable == "" && s.head.first <= lsn {
			return i
		}
	}
	return -1
}

// follows checks that seg continues where its predecessor, which ends with l and before LSN next,
// ended.
func (s *segment) follows(l link, next lsn.LSN) error {
	if s.number != l.number+1 {
		return s.wrong(0, "segment %d is missing", l.number+1)
	}
	if s.head.prev != l {
		return s.wrong(headerPrevOff, "predecessor %d of %d bytes, chain hash %016x; want %d bytes, %016x",
			s.head.prev.number, s.head.prev.length, s.head.prev.chain, l.length, l.chain)
	}
	if s.head.first != next {
		return s.wrong(headerFirstOff, "begins with LSN %d, want %d", s.head.first, next)
	}
	return nil
}

// lost reports whether s was begun after records that a power cut took, so that it does not follow
// what is left of them: segment number, which ends with foot, nil = none, and before LSN next. foot
// may be of an earlier session; the lost frames had overwritten it.
func (s *segment) lost(o *Options, number uint64, foot *footer, next lsn.LSN) (bool, error) {
	if s.number != number+1 || foot != nil && s.head.prev.length <= foot.bytes {
		return false, nil
	}
	synced, err := s.synced(o, next)
	return !synced, err
}

// wrong returns the error of a fault that no crash can cause.
func (s *segment) wrong(off int64, format string, args ...any) error {
	return &damage{s.name, off, fmt.Sprintf(format, args...), true}
}
