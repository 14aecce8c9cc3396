package cfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
)

// Format of a stored cblock. The bytes before the checksum depend on the codec of the file. Source:
// cfile spec §3.
//
//	codec none          payload
//	others, version 2   payload's length (4), codec stream; raw payload if as long
//	others, version 1   stream's length (4), payload's length (4), codec stream
//	all                 CRC-32C of all bytes before it (4); only where the file has checksums
//
// 64 zeros of INT32, plain, LZ4, version 2, no checksum (the payload has 264 = 0x108 bytes):
// 08 01 00 00 2f 40 00 01 00 ee 50 00 00 00 00 00
const (
	frameLenV2 = 4        // file format: never change
	frameLenV1 = 8        // file format: never change
	maxPayload = 16 << 20 // of a cblock in a file with a codec; file format: never change
)

// minGainNum/minGainDen: a cblock is stored compressed only if that shrinks it to nine tenths or
// less.
const (
	minGainNum = 9
	minGainDen = 10
)

func appendCRC(dst []byte, from int) []byte {
	return binary.LittleEndian.AppendUint32(dst, coding.CRC32C(dst[from:]))
}

func putCRC(dst, covered []byte) { binary.LittleEndian.PutUint32(dst, coding.CRC32C(covered)) }

// framer writes cblocks to a sink. It counts bytes itself, since a sink may contain more than this
// file.
type framer struct {
	sink      block.Sink
	codec     compress.Codec
	hard      bool // compress for reading
	hasty     bool // see WriterOptions.Hasty
	checksums bool
	offset    int64 // bytes of the file so far
	raw       int   // cblocks since the last cblock that compression made smaller
}

// See WriterOptions.Hasty: to compress random bytes takes longer than to write them.
const (
	rawRun  = 8
	rawStep = 8
)

// buffers have the payload and the stored form of a cblock while it is written. They belong to no
// file, since the files of many columns are written at a time.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// reuse returns a buffer to the pool, with the memory that it has grown to.
func reuse(b *[]byte, grown []byte) {
	if cap(grown) <= maxPooled {
		*b = grown[:0]
		buffers.Put(b)
	}
}

// write writes b to the sink unchanged.
func (f *framer) write(b []byte) error {
	n, err := f.sink.Write(b)
	f.offset += int64(n)
	if err != nil {
		return fmt.Errorf("cfile: block %v: write at byte %d: %w", f.sink.ID(), f.offset, err)
	}
	return nil
}

// writeBlock writes payload as one cblock. It returns the cblock's pointer and the CRC of its
// stored form, which is computed only if the file has checksums. The spare capacity of payload is
// overwritten. Source: cfile spec §3.1, §3.3.
func (f *framer) writeBlock(payload []byte) (BlockPointer, uint32, error) {
	form := payload
	if f.codec != compress.None {
		if len(payload) > maxPayload {
			return BlockPointer{}, 0,
				fmt.Errorf("cfile: block %v: cblock of %d bytes, at most %d can be compressed", f.sink.ID(),
					len(payload), maxPayload)
		}
		buf := buffers.Get().(*[]byte)
		defer func() { reuse(buf, form) }()
		var err error
		if form, err = f.pack(*buf, payload); err != nil {
			return BlockPointer{}, 0, err
		}
	}
	return f.writeForm(form)
}

// writeForm writes a cblock whose bytes before the checksum are form, like writeBlock.
func (f *framer) writeForm(form []byte) (BlockPointer, uint32, error) {
	crc := uint32(0)
	if f.checksums {
		crc = coding.CRC32C(form)
		form = binary.LittleEndian.AppendUint32(form, crc)
	}
	if int64(len(form)) > 1<<31-1 {
		return BlockPointer{}, 0, fmt.Errorf("cfile: block %v: cblock of %d bytes does not fit a pointer",
			f.sink.ID(), len(form))
	}
	p := BlockPointer{f.offset, int32(len(form))}
	return p, crc, f.write(form)
}

// pack appends the stored form in version 2 to the empty buf: compressed or, if that does not save
// a tenth, or probably would not, raw.
func (f *framer) pack(buf, payload []byte) ([]byte, error) {
	out := binary.LittleEndian.AppendUint32(buf, uint32(len(payload)))
	var err error
	if f.hasty && f.raw >= rawRun && f.raw%rawStep != 0 {
		f.raw++
		return append(out, payload...), nil
	}
	if f.hard {
		out, err = f.codec.CompressHard(out, payload)
	} else {
		out, err = f.codec.Compress(out, payload)
	}
	if err != nil {
		return nil, fmt.Errorf("cfile: block %v: %w", f.sink.ID(), err)
	}
	if n := len(out) - frameLenV2; n >= len(payload) || n*minGainDen > len(payload)*minGainNum {
		f.raw++
		return append(out[:frameLenV2], payload...), nil
	}
	f.raw = 0
	return out, nil
}

// scratch is memory for reading a cblock: its stored form, its uncompressed payload, and the
// offsets in that.
type scratch struct {
	stored, payload []byte
	offsets         []uint32
}

// spareOfKept limits the memory of a cblock that was stored raw and is kept without a copy: it may
// exceed the payload by one part in spareOfKept.
const spareOfKept = 16

// maxPooled limits the memory that the pool keeps between reads.
const maxPooled = 1 << 20

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) release() {
	if cap(s.stored) > maxPooled {
		return
	}
	if cap(s.payload) > maxPooled {
		s.payload = nil
	}
	scratches.Put(s)
}

// sized sets *b to n bytes, reusing its memory if that is large enough.
func sized(b *[]byte, n int) []byte {
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	*b = (*b)[:n]
	return *b
}

// readBlock reads the cblock at p, verifies its checksum and decompresses it. crc is the CRC of the
// stored form.
//
// If s is nil, the payload is new memory, which the caller may keep. Otherwise it aliases s and is
// valid until s is used again. Source: cfile spec §3.5.
func (r *Reader) readBlock(p BlockPointer, s *scratch) (payload []byte, crc uint32, err error) {
	if err := r.checkPointer(p); err != nil {
		return nil, 0, err
	}
	keep := s == nil
	if keep {
		s = scratches.Get().(*scratch)
		defer s.release()
	}
	held := r.acquire(p)
	defer func() { r.release(held) }()
	var stored []byte
	if keep && r.codec == compress.None {
		stored = make([]byte, p.Size)
	} else {
		stored = sized(&s.stored, int(p.Size))
	}
	if err := r.readAt(stored, p.Offset); err != nil {
		return nil, 0, err
	}
	form, crc, err := r.checkSum(stored, p)
	if err != nil || r.codec == compress.None {
		return form, crc, err
	}
	stream, n, err := r.unframe(form, p)
	if err != nil {
		return nil, 0, err
	}
	if r.version != 1 && len(stream) == n {
		switch {
		case !keep:
		case cap(stored) <= len(stored)+len(stored)/spareOfKept:
			s.stored = nil // now belongs to the payload
		default:
			stream = bytes.Clone(stream)
		}
		return stream, crc, nil
	}
	held += r.acquireMore(held, p, n)
	if keep {
		payload = make([]byte, n)
	} else {
		payload = sized(&s.payload, n)
	}
	if err := r.codec.Decompress(payload, stream); err != nil {
		return nil, 0, r.at(p, err)
	}
	return payload, crc, nil
}

// minLimited is the size of a read from which on it is bounded by Limiter. Smaller ones take little
// memory, and not much longer than asking for it.
const minLimited = 16 << 10

// acquire acquires the memory to read the cblock at p: its stored form and, since the length of its
// payload is not known yet, as much as the largest one so far. It returns the number of bytes.
func (r *Reader) acquire(p BlockPointer) int64 {
	if r.limit == nil || p.Size < minLimited {
		return 0
	}
	n := int64(p.Size)
	if r.codec != compress.None {
		n += max(n, r.largest.Load())
	}
	r.limit.Acquire(n)
	return n
}

// acquireMore acquires the rest of the memory for a payload of n bytes. held is the number of bytes
// that acquire has acquired; the read calls Acquire once, here or there, so reads do not wait for
// each other.
func (r *Reader) acquireMore(held int64, p BlockPointer, n int) int64 {
	if held == 0 { // nothing was acquired for the small stored form
		if r.limit == nil || n < minLimited {
			return 0
		}
		r.limit.Acquire(int64(n))
		return int64(n)
	}
	more := int64(p.Size) + int64(n) - held
	if more <= 0 {
		return 0
	}
	if old := r.largest.Load(); int64(n) > old {
		r.largest.CompareAndSwap(old, int64(n))
	}
	r.limit.Add(more)
	return more
}

// release releases n bytes of acquire and acquireMore.
func (r *Reader) release(n int64) {
	if n > 0 {
		r.limit.Release(n)
	}
}

// checkPointer returns an error for a pointer that cannot lead to a cblock.
func (r *Reader) checkPointer(p BlockPointer) error {
	if p.Offset < r.dataStart || p.Size <= 0 || int64(p.Size) > r.dataEnd-p.Offset {
		return r.corruptf("pointer to %v: want a cblock within bytes [%d,%d)", p, r.dataStart, r.dataEnd)
	}
	return nil
}

// checkSum verifies the checksum of a stored cblock and returns the bytes before it.
func (r *Reader) checkSum(stored []byte, p BlockPointer) (form []byte, crc uint32, err error) {
	if !r.info.Checksums {
		return stored, 0, nil
	}
	n := len(stored) - checksumLen
	if n < 0 {
		return nil, 0, r.corruptf("pointer to %v: too short for a checksum", p)
	}
	want := binary.LittleEndian.Uint32(stored[n:])
	if crc = coding.CRC32C(stored[:n]); crc != want {
		return nil, 0, r.corruptf("cblock at byte %d: crc %08x, want %08x", p.Offset, crc, want)
	}
	return stored[:n:n], crc, nil
}

// unframe parses the lengths before a codec's stream. n is the payload's length. unframe does not
// allocate it. Source: cfile spec §3.1 to §3.3.
func (r *Reader) unframe(form []byte, p BlockPointer) (stream []byte, n int, err error) {
	header := frameLenV2
	if r.version == 1 {
		header = frameLenV1
	}
	if len(form) < header {
		return nil, 0, r.corruptf("cblock at byte %d: %d bytes, want at least %d for its lengths", p.Offset,
			len(form), header)
	}
	stream = form[header:]
	size := binary.LittleEndian.Uint32(form[header-4:])
	switch {
	case size > maxPayload:
		return nil, 0, r.corruptf("cblock at byte %d: uncompressed length is %d bytes, at most %d are allowed",
			p.Offset, size, maxPayload)
	case r.version == 1 && int64(binary.LittleEndian.Uint32(form)) != int64(len(stream)):
		return nil, 0, r.corruptf("cblock at byte %d: compressed length is %d bytes, the cblock has %d",
			p.Offset, binary.LittleEndian.Uint32(form), len(stream))
	case r.version != 1 && len(stream) > int(size):
		return nil, 0, r.corruptf("cblock at byte %d: %d bytes compressed are more than %d uncompressed",
			p.Offset, len(stream), size)
	case int64(size) > int64(len(stream))*int64(r.codec.MaxRatio()):
		return nil, 0, r.corruptf("cblock at byte %d: %s cannot expand to %d bytes from %d", p.Offset, r.codec,
			size, len(stream))
	}
	return stream, int(size), nil
}

// readAt fills b with the bytes at off. The caller has checked that the file is long enough.
func (r *Reader) readAt(b []byte, off int64) error {
	if from := off - (r.size - int64(len(r.tail))); from >= 0 && r.tail != nil {
		copy(b, r.tail[from:])
		return nil
	} else if r.onlyTail {
		return errOutsideTail
	}
	n, err := r.src.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.corruptf("read %d of %d bytes at byte %d: the file is shorter than it was", n, len(b), off)
	}
	return fmt.Errorf("cfile: block %v: read at byte %d: %w", r.src.ID(), off, err)
}

// corruptf returns an ErrCorrupt that names the block.
func (r *Reader) corruptf(format string, args ...any) error {
	return fault.Corruptf("cfile: block %v: "+format, append([]any{r.src.ID()}, args...)...)
}

// at adds the location of the cblock at p to err.
func (r *Reader) at(p BlockPointer, err error) error {
	return fmt.Errorf("cfile: block %v: cblock at byte %d: %w", r.src.ID(), p.Offset, err)
}
