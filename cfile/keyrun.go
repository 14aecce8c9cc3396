package cfile

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/compress"
)

// maxGap is the number of bytes between two cblocks that are worth reading, to read both at once.
const maxGap = 8 << 10

// KeyRun keeps the adjacent cblocks of a Keyed file that VisitNear has read last. The zero KeyRun is
// ready for use, with any files in turn. Not safe for concurrent use.
type KeyRun struct {
	r       *Reader
	off     int64  // of bytes in the file
	bytes   []byte // stored cblocks
	offsets []uint32

	next []byte       // a key that follows
	at   BlockPointer // its cblock; Size is 0 if it is not known
}

// VisitNear is VisitFloor for one of several keys in ascending order. next are the following keys:
// VisitNear reads the cblock of the key and, in the same read, the cblocks of next as far as they
// are adjacent, or nearly so, up to 256 KiB. A cblock that u already has is not read again.
func (r *Reader) VisitNear(u *KeyRun, key []byte, next [][]byte,
	visit func(row batch.Ordinal, at, value []byte) error) error {
	if r.codec != compress.None || !r.info.ValueIndex {
		return r.VisitFloor(key, visit)
	}
	p := u.at
	if u.r != r || p.Size == 0 || !bytes.Equal(u.next, key) {
		var ok bool
		var err error
		if p, ok, err = r.findNode(key); err != nil || !ok {
			return err
		}
	}
	if err := r.checkPointer(p); err != nil {
		return err
	}
	if !u.has(r, p) {
		if err := u.read(r, p, next); err != nil {
			return err
		}
	}
	from := p.Offset - u.off
	to := from + int64(p.Size)
	form, _, err := r.checkSum(u.bytes[from:to:to], p)
	if err != nil {
		return err
	}
	return r.visitFloor(p, form, &u.offsets, key, visit)
}

// has reports whether u has the cblock at p of a file.
func (u *KeyRun) has(r *Reader, p BlockPointer) bool {
	return u.r == r && p.Offset >= u.off && p.end() <= u.off+int64(len(u.bytes))
}

// read reads the cblock at p, and the cblocks of next that are near.
func (u *KeyRun) read(r *Reader, p BlockPointer, next [][]byte) error {
	end := p.end()
	u.at.Size = 0
	for _, key := range next {
		q, ok, err := r.findNode(key)
		if err == nil && ok {
			u.next, u.at = append(u.next[:0], key...), q
		}
		if err != nil || !ok || q.Offset-end > maxGap || q.end()-p.Offset > maxRun || r.checkPointer(q) != nil {
			break // the call for this key returns the error
		}
		end = max(end, q.end())
	}
	u.r = nil // in case of an error
	size := end - p.Offset
	held := r.acquire(BlockPointer{p.Offset, int32(size)})
	defer r.release(held)
	if err := r.readAt(sized(&u.bytes, int(size)), p.Offset); err != nil {
		return err
	}
	u.r, u.off = r, p.Offset
	return nil
}
