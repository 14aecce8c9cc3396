package wal

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/lsn"
)

// bitFlip is a single flipped bit that replay has repaired in memory, and Repair repairs in the
// file.
//
// A CRC is linear: how a flipped bit changes it depends on the bit's position alone, and CRC32C
// changes differently for all positions within 2^31 bits. So the difference between the stored CRC
// and the CRC of the bytes gives the position, if one bit flipped. Other damage may give a position
// too, so something else must confirm it: the hash of a payload; for a frame header the payload's
// CRC and hash, which it contains; for a segment header the instance, and the number in the file's
// name. All bits of a footer are known in advance.
type bitFlip struct {
	file string
	off  int64   // of the byte
	mask byte    // of the bit
	was  byte    // in the file
	lsn  lsn.LSN // of the record; for a header the first of the segment
}

func (m bitFlip) String() string {
	return fmt.Sprintf("bit %d is flipped; a writer will put it right", bits.TrailingZeros8(m.mask))
}

// castagnoliPoly is CRC32C's polynomial in the reflected form in which the CRC is computed.
const castagnoliPoly = 0x82f63b78

// flippedBit finds the bit among n bytes whose flip changes their CRC32C by syndrome.
func flippedBit(syndrome uint32, n int) (off int, mask byte, ok bool) {
	// s is the difference that the current bit makes, from the last bit of the last byte backwards:
	// each further bit is one more step of the CRC.
	s := uint32(castagnoliPoly)
	for off = n - 1; off >= 0; off-- {
		for mask = 0x80; mask != 0; mask >>= 1 {
			if s == syndrome {
				return off, mask, true
			}
			s = s>>1 ^ castagnoliPoly&-(s&1)
		}
	}
	return 0, 0, false
}

// flippedHeaderBit is flippedBit for b[:n] and the CRC in the next four bytes, where the bit may be
// too; crc is the CRC of b[:n].
func flippedHeaderBit(b []byte, n int, crc uint32) (off int, mask byte, ok bool) {
	syndrome := binary.LittleEndian.Uint32(b[n:]) ^ crc
	if bits.OnesCount32(syndrome) == 1 {
		at := bits.TrailingZeros32(syndrome)
		return n + at/8, 1 << (at % 8), true
	}
	return flippedBit(syndrome, n)
}

// repaired records the repair of the bit at off of the segment, whose byte is now.
func (r *reader) repaired(off int64, mask, now byte) {
	r.flips = append(r.flips, bitFlip{r.name, off, mask, now ^ mask, r.at.next})
}

// repairFrame repairs one flipped bit of the frame expected at pos, in the window, and reports
// whether it did.
func (r *reader) repairFrame(pos *border, part int) (bool, error) {
	head, err := r.read(pos.off, frameLen)
	if err != nil || len(head) < frameLen {
		return false, err
	}
	var fixed [frameLen]byte
	copy(fixed[:], head)
	headOff, headMask := -1, byte(0)
	if crc := crcWith(r.seed, head[:frameCRCOff]); crc != binary.LittleEndian.Uint32(head[frameCRCOff:]) {
		var ok bool
		if headOff, headMask, ok = flippedHeaderBit(head, frameCRCOff, crc); !ok {
			return false, nil
		}
		fixed[headOff] ^= headMask
	}
	f, problem := parseFrame(fixed[:], r.number, r.seed)
	if problem != "" || f.lsn != pos.next || f.part != part || f.durable >= f.lsn || f.size() > r.win.size-pos.off {
		return false, nil
	}
	all, err := r.read(pos.off, int(f.size()))
	if err != nil {
		return false, err
	}
	off, mask := headOff, headMask
	body := all[frameLen:]
	if headOff < 0 {
		var ok bool
		if off, mask, ok = flippedPayloadBit(body, &f); !ok {
			return false, nil
		}
		off += frameLen
	}
	all[off] ^= mask
	payload := body[:f.length]
	if crc32c(payload) != f.check || xxh3.Hash(payload) != f.hash || !zero(body[f.length:]) {
		all[off] ^= mask
		return false, nil
	}
	r.repaired(pos.off+int64(off), mask, all[off])
	return true, nil
}

// flippedPayloadBit finds the flipped bit in a frame's payload and padding.
func flippedPayloadBit(body []byte, f *frame) (off int, mask byte, ok bool) {
	if syndrome := crc32c(body[:f.length]) ^ f.check; syndrome != 0 {
		return flippedBit(syndrome, f.length)
	}
	for off := f.length; off < len(body); off++ {
		if bits.OnesCount8(body[off]) == 1 {
			return off, body[off], true // if a second bit is set, the caller detects it
		}
	}
	return 0, 0, false
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// repairFooter repairs one flipped bit of b, the footer if the segment ends at r.at.
func (r *reader) repairFooter(b []byte) bool {
	if len(b) < footerLen || r.at.off+footerLen != r.win.size {
		return false
	}
	f := r.wantFooter(r.at.next - 1)
	want := f.encode(r.seed)
	at := -1
	for i, c := range want {
		switch n := bits.OnesCount8(b[i] ^ c); {
		case n == 0:
		case n == 1 && at < 0:
			at = i
		default:
			return false
		}
	}
	if at < 0 {
		return false
	}
	mask := b[at] ^ want[at]
	b[at] = want[at]
	r.repaired(r.at.off+int64(at), mask, b[at])
	return true
}

// repairHeader returns the header of a segment with one flipped bit repaired.
func (s *segment) repairHeader(b []byte, instance [16]byte) (header, bool) {
	if len(b) < headerLen {
		return header{}, false
	}
	var fixed [headerLen]byte
	copy(fixed[:], b)
	off, mask, ok := flippedHeaderBit(b, headerCRCOff, crc32c(b[:headerCRCOff]))
	if !ok {
		return header{}, false
	}
	fixed[off] ^= mask
	h, problem, err := parseHeader(fixed[:])
	if problem != "" || err != nil || h.instance != instance || h.number != s.number {
		return header{}, false
	}
	s.flips = []bitFlip{{s.name, int64(off), mask, b[off], h.first}}
	return h, true
}

// writeRepairs writes the repaired bytes into their files and syncs them.
func (t *Tail) writeRepairs() error {
	for _, m := range t.flips {
		if err := t.writeRepair(m); err != nil {
			return err
		}
		t.o.Logger.Warn("flipped bit of the log is repaired", "file", m.file, "byte", m.off, "mask", m.mask)
	}
	return nil
}

func (t *Tail) writeRepair(m bitFlip) (err error) {
	f, err := t.o.FS.Open(t.o.path(m.file), true)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	var b [1]byte
	if _, err := f.ReadAt(b[:], m.off); err != nil {
		return err
	}
	b[0] ^= m.mask
	if _, err := f.WriteAt(b[:], m.off); err != nil {
		return err
	}
	return f.Sync()
}
