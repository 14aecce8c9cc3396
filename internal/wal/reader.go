package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
)

// damage is an error: the offset at which a segment's bytes differ from any that a writer leaves.
// It is ErrCorrupt, unless Replay classifies it as a torn tail.
type damage struct {
	file    string
	off     int64
	problem string
	certain bool // no crash can cause this
}

func (d *damage) Error() string {
	return fmt.Sprintf("wal: %s: byte %d: %s: %v", d.file, d.off, d.problem, fault.ErrCorrupt)
}

func (d *damage) Unwrap() error { return fault.ErrCorrupt }

// window reads a file through one buffer.
type window struct {
	f     vfs.File
	size  int64 // of the file
	buf   []byte
	start int64 // offset of buf in the file
}

const windowBytes = 256 << 10

// at returns the n bytes at off, fewer at the end of the file. They are valid until the next call.
func (w *window) at(off int64, n int) ([]byte, error) {
	n = int(max(0, min(int64(n), w.size-off)))
	if off < w.start || off+int64(n) > w.start+int64(len(w.buf)) {
		if err := w.fill(off, n); err != nil {
			return nil, err
		}
	}
	return w.buf[off-w.start:][:n], nil
}

// forget makes the next call of at read the file again.
func (w *window) forget() { w.buf = w.buf[:0] }

func (w *window) fill(off int64, n int) error {
	length := int(min(int64(max(n, windowBytes)), w.size-off))
	if cap(w.buf) < length {
		w.buf = make([]byte, length)
	}
	w.buf, w.start = w.buf[:length], off
	read, err := w.f.ReadAt(w.buf, off)
	if read == length {
		return nil
	}
	w.buf = w.buf[:0]
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("file of %d bytes ends at byte %d: %w", w.size, off+int64(read), io.ErrUnexpectedEOF)
	}
	return err
}

// border is a place between two records of a segment.
type border struct {
	off    int64   // bytes before it
	next   lsn.LSN // of the record that follows
	chain  uint64  // over the frames before it
	frames uint32  // before it
}

// reader walks one segment, record by record. Its memory is one record, or one window.
type reader struct {
	name   string
	number uint64
	seed   uint32
	win    window

	at     border    // after the last complete record
	foot   *footer   // set once met
	synced lsn.LSN   // highest LSN that the frames before at, or the footer, record as durable
	flips  []bitFlip // flipped bits that were repaired, its own header's first
	record []byte    // of several parts
	looked bool      // Verify has looked again whether the segment is sealed
}

// openReader returns a reader positioned after the header of seg.
func openReader(o *Options, seg *segment) (*reader, error) {
	f, err := o.FS.Open(o.path(seg.name), false)
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	return &reader{
		name: seg.name, number: seg.number, seed: seedCRC(o.Instance), flips: slices.Clone(seg.flips),
		win: window{f: f, size: seg.size},
		at:  border{off: headerLen, next: seg.head.first, chain: xxh3.Hash(seg.head.encode())},
	}, nil
}

func (r *reader) close() { r.win.f.Close() }

func (r *reader) damaged(off int64, format string, args ...any) error {
	return &damage{file: r.name, off: off, problem: fmt.Sprintf(format, args...)}
}

// read returns the n bytes at off, fewer at the end of the file.
func (r *reader) read(off int64, n int) ([]byte, error) {
	b, err := r.win.at(off, n)
	if err != nil {
		return nil, fmt.Errorf("wal: %s: read byte %d: %w", r.name, off, err)
	}
	return b, nil
}

// next returns the next record. Its payload is valid until the next call. At the end of the file,
// or after the footer, next returns io.EOF. A *damage means that the bytes from r.at on are not a
// complete record; other errors mean that they cannot be read.
func (r *reader) next() (lsn lsn.LSN, payload []byte, err error) {
	pos := r.at
	for part := 0; ; part++ {
		if pos.off == r.win.size {
			if part > 0 {
				return 0, nil, r.damaged(pos.off, "LSN %d ends after part %d", pos.next, part-1)
			}
			return 0, nil, io.EOF
		}
		if part == 0 {
			if err := r.footer(); err != nil {
				return 0, nil, err
			}
		}
		f, body, err := r.frame(&pos, part)
		if d := (*damage)(nil); errors.As(err, &d) {
			repaired, ferr := r.repairFrame(&pos, part)
			if ferr != nil {
				return 0, nil, ferr
			}
			if repaired {
				f, body, err = r.frame(&pos, part)
			}
		}
		if err != nil {
			return 0, nil, err
		}
		if f.last && part == 0 {
			payload = body
		} else {
			if part == 0 {
				r.record = r.record[:0]
			}
			r.record = append(r.record, body...)
			payload = r.record
		}
		r.synced = max(r.synced, f.durable)
		if f.last {
			pos.next++
			r.at = pos
			return f.lsn, payload, nil
		}
		if part == maxParts-1 {
			return 0, nil, r.damaged(pos.off, "LSN %d has more than %d parts", pos.next, maxParts)
		}
	}
}

// frame checks the frame at pos, which must be the given part of the next record, and advances pos.
func (r *reader) frame(pos *border, part int) (f frame, payload []byte, err error) {
	head, err := r.read(pos.off, frameLen)
	if err != nil {
		return f, nil, err
	}
	f, problem := parseFrame(head, r.number, r.seed)
	switch {
	case problem != "":
		return f, nil, r.damaged(pos.off, "%s", problem)
	case f.lsn != pos.next || f.part != part:
		return f, nil, r.damaged(pos.off, "LSN %d part %d, want LSN %d part %d", f.lsn, f.part, pos.next, part)
	case f.size() > r.win.size-pos.off:
		return f, nil, r.damaged(pos.off, "frame of %d bytes, the file has %d left", f.size(), r.win.size-pos.off)
	}
	chain := nextChain(pos.chain, head)
	all, err := r.read(pos.off, int(f.size()))
	if err != nil {
		return f, nil, err
	}
	payload = all[frameLen : frameLen+f.length]
	if check := crc32c(payload); check != f.check {
		return f, nil, r.damaged(pos.off, "payload of LSN %d: crc %08x, want %08x", f.lsn, check, f.check)
	}
	if hash := xxh3.Hash(payload); hash != f.hash {
		return f, nil, r.damaged(pos.off, "payload of LSN %d: hash %016x, want %016x", f.lsn, hash, f.hash)
	}
	for i, b := range all[frameLen+f.length:] {
		if b != 0 {
			return f, nil, r.damaged(pos.off+int64(frameLen+f.length+i), "padding is %#02x, not zero", b)
		}
	}
	pos.off, pos.chain, pos.frames = pos.off+f.size(), chain, pos.frames+1
	return f, payload, nil
}

// footer returns io.EOF if r is at the footer, which must agree with all preceding frames, and nil
// if something else is there.
func (r *reader) footer() error {
	b, err := r.read(r.at.off, footerLen)
	if err != nil {
		return err
	}
	f, ok := parseFooter(b, r.number, r.seed)
	if !ok && r.repairFooter(b) {
		f, ok = parseFooter(b, r.number, r.seed)
	}
	if ok {
		return r.checkFooter(f)
	}
	return nil
}

// wantFooter returns the footer that agrees with all frames before r.at.
func (r *reader) wantFooter(durable lsn.LSN) footer {
	return footer{
		segment: r.number, last: r.at.next - 1, durable: durable, chain: r.at.chain,
		bytes: r.at.off + footerLen, frames: r.at.frames,
	}
}

func (r *reader) checkFooter(f footer) error {
	want := r.wantFooter(min(f.durable, r.at.next-1))
	switch {
	case f != want:
		return &damage{r.name, r.at.off, fmt.Sprintf("footer %+v, want %+v", f, want), true}
	case f.bytes != r.win.size:
		// A crash may leave this: bytes of a record that did not fit on the disk, or zeros for later
		// records, cut off again, but the cut not synced yet.
		if last, err := r.lastByte(f.bytes); err != nil {
			return err
		} else if last > f.bytes {
			return r.damaged(f.bytes, "%d bytes after the footer", last-f.bytes)
		}
	}
	r.foot, r.synced = &f, max(r.synced, f.durable)
	return io.EOF
}

// lastByte returns the end of the last nonzero byte from off on, or off if all bytes from off on
// are zero.
func (r *reader) lastByte(off int64) (end int64, err error) {
	for end = off; off < r.win.size; {
		b, err := r.read(off, windowBytes)
		if err != nil {
			return 0, err
		}
		if n := len(bytes.TrimRight(b, "\x00")); n > 0 {
			end = off + int64(n)
		}
		off += int64(len(b))
	}
	return end, nil
}

// proof searches from off on for frame headers of this segment, and for its footer, at every
// multiple of 8. It returns the highest LSN that one of them records as durable, and whether there
// is any.
//
// A header alone is sufficient: it was true when it was written, even if a crash tore its payload.
// A user's value that contains a copy of a frame proves nothing false: that frame was written
// before the record with the copy, so the LSN that it records as durable is below that record's.
func (r *reader) proof(off int64) (durable lsn.LSN, found bool, err error) {
	for ; off+footerLen <= r.win.size; off += alignment {
		b, err := r.read(off, frameLen)
		if err != nil {
			return 0, false, err
		}
		if f, ok := parseFooter(b, r.number, r.seed); ok {
			durable, found = max(durable, f.durable), true
		} else if frameIntact(b, r.number, r.seed) {
			f, _ := parseFrame(b, r.number, r.seed)
			durable, found = max(durable, f.durable), true
		}
	}
	return durable, found, nil
}
