package kuduwal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/vfs"
)

// MaxBatchBytes is the largest batch of entries that is read. Kudu's servers refuse to send
// messages of more than 50 MiB to each other, and collect batches of 4 MiB.
const MaxBatchBytes = 64 << 20

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Reader reads the entries of a segment, in order. Create one with Open.
type Reader struct {
	// Header is nil if the file has only zeros: a segment that was allocated and not begun.
	Header *kudupb.LogSegmentHeaderPB
	// Footer is nil in a segment that was not closed, or whose footer is damaged.
	Footer *kudupb.LogSegmentFooterPB

	path  string
	file  vfs.File
	in    *bufio.Reader
	codec compress.Codec
	width int   // of a batch's header
	size  int64 // of the file
	end   int64 // of the batches: the file's, or the beginning of the footer
	begin int64 // of the batch that rest belongs to
	off   int64 // after that batch

	stored, payload []byte
	rest            []byte // entries of the batch that were not returned yet
	entries         int64
	entry           kudupb.LogEntryPB
	findings        []Finding
	err             error
}

// Open opens a segment. Errors: ErrCorrupt for a file without a header, even an empty one;
// ErrUnsupported for a feature that this package does not know.
func Open(fsys vfs.FS, path string) (*Reader, error) {
	file, err := fsys.Open(path, false)
	if err != nil {
		return nil, err
	}
	r := &Reader{path: path, file: file}
	if err := r.open(); err != nil {
		file.Close()
		return nil, located(path, -1, err)
	}
	return r, nil
}

func (r *Reader) open() (err error) {
	if r.size, err = r.file.Size(); err != nil {
		return err
	}
	r.end = r.size
	if err := r.readHeader(); err != nil || r.Header == nil {
		return err
	}
	if err := r.readFooter(); err != nil {
		return err
	}
	r.in = bufio.NewReaderSize(io.NewSectionReader(r.file, r.off, r.end-r.off), 256<<10)
	return nil
}

func (r *Reader) readHeader() error {
	var head [headLen]byte
	if r.size < int64(headLen) {
		return fault.Corruptf("header cut off: the file has %d bytes", r.size)
	}
	if _, err := r.file.ReadAt(head[:], 0); err != nil {
		return err
	}
	if zeros(head[:]) {
		r.width, r.off = batchLen, r.size
		return r.checkTail(0)
	}
	if string(head[:len(headMagic)]) != headMagic {
		return fault.Corruptf("magic %q, want %q", head[:len(headMagic)], headMagic)
	}
	n := int64(binary.LittleEndian.Uint32(head[len(headMagic):]))
	if n > maxMessageLen || int64(headLen)+n > r.size {
		return fault.Corruptf("header of %d bytes in a file of %d", n, r.size)
	}
	message := make([]byte, n)
	if _, err := r.file.ReadAt(message, int64(headLen)); err != nil {
		return err
	}
	h := new(kudupb.LogSegmentHeaderPB)
	if err := unmarshal(message, h); err != nil {
		return fault.Corruptf("header: %v", err)
	}
	if f := h.GetIncompatibleFeatures(); f != 0 {
		return fault.Unsupportedf("features %#x", f)
	}
	codec, err := compress.Lookup(h.GetCompressionCodec())
	if err != nil {
		return err
	}
	r.Header, r.codec, r.off, r.width = h, codec, int64(headLen)+n, batchLen
	if h.DeprecatedMajorVersion != nil {
		r.width = oldBatchLen
	}
	return nil
}

// readFooter finds the footer. Without one, or with a damaged one, the batches end where they are
// no longer valid.
func (r *Reader) readFooter() error {
	var tail [tailLen]byte
	at := r.size - int64(tailLen)
	if at < r.off {
		return nil
	}
	if _, err := r.file.ReadAt(tail[:], at); err != nil {
		return err
	}
	if string(tail[:len(footMagic)]) != footMagic {
		return nil
	}
	n := int64(binary.LittleEndian.Uint32(tail[len(footMagic):]))
	footer := new(kudupb.LogSegmentFooterPB)
	if n <= maxMessageLen && at-n >= r.off {
		message := make([]byte, n)
		if _, err := r.file.ReadAt(message, at-n); err != nil {
			return err
		}
		if err := unmarshal(message, footer); err == nil {
			r.Footer, r.end = footer, at-n
			return nil
		}
	}
	r.find(at, "damaged footer")
	return nil
}

func (r *Reader) find(off int64, format string, args ...any) {
	r.findings = append(r.findings, Finding{r.path, off, fmt.Sprintf(format, args...)})
}

// Findings returns what was found so far. It is complete when Next has returned false.
func (r *Reader) Findings() []Finding { return r.findings }

// Next advances to the next entry. It returns false at the end of the log and on an error, which
// Close returns.
func (r *Reader) Next() bool {
	for r.err == nil {
		if len(r.rest) == 0 {
			if !r.nextBatch() {
				return false
			}
			continue
		}
		entry, rest, ok := nextMessage(r.rest, 1)
		if !ok {
			r.fail(fault.Corruptf("malformed batch of entries"))
			return false
		}
		r.rest = rest
		if entry == nil {
			continue
		}
		r.entries++
		if err := unmarshal(entry, &r.entry); err != nil {
			r.fail(fault.Corruptf("entry: %v", err))
			return false
		}
		return true
	}
	return false
}

// Entry returns the current entry. It may be kept: it does not alias the reader's memory, and Next
// replaces its messages instead of changing them.
func (r *Reader) Entry() *kudupb.LogEntryPB { return &r.entry }

// Offset returns where the batch of the current entry begins in the file.
func (r *Reader) Offset() int64 { return r.begin }

// Close closes the file and returns the first error of Next. Errors: ErrCorrupt, ErrUnsupported.
func (r *Reader) Close() error {
	err := r.file.Close()
	if r.err != nil {
		return r.err
	}
	return err
}

func (r *Reader) fail(err error) {
	r.err = located(r.path, r.begin, err)
}

// nextBatch reads a batch. It returns false at the end and on an error.
func (r *Reader) nextBatch() bool {
	r.begin = r.off
	if r.off == r.end {
		r.checkCount()
		return false
	}
	problem, err := r.readBatch()
	switch {
	case err != nil:
		r.fail(err)
	case problem == "":
		return true
	case r.Footer != nil:
		r.fail(fault.Corruptf("%s, in a closed segment", problem))
	default:
		if err := r.checkTail(r.begin); err != nil {
			r.fail(fmt.Errorf("%s: %w", problem, err))
		} else if problem != zeroHeader && len(r.findings) == 0 {
			r.find(r.begin, "the segment ends in %d bytes that are not entries: %s", r.size-r.begin, problem)
		}
		r.off, r.end = r.begin, r.begin
	}
	return false
}

// zeroHeader is the problem of a batch that is not there: space allocated ahead.
const zeroHeader = "zeros instead of a batch of entries"

// readBatch reads and unpacks the batch at r.off and moves r.off past it. A batch that is cut off
// or damaged is a problem, which may be the end of the log. The error is for batches that are
// intact and cannot be read.
func (r *Reader) readBatch() (problem string, err error) {
	var head [batchLen]byte
	if r.end-r.off < int64(r.width) {
		n, err := io.ReadFull(r.in, head[:r.end-r.off])
		if err != nil {
			return "", err
		}
		if zeros(head[:n]) {
			return zeroHeader, nil
		}
		return "header of a batch cut off", nil
	}
	if _, err := io.ReadFull(r.in, head[:r.width]); err != nil {
		return "", err
	}
	h, ok := parseBatchHeader(head[:], r.width)
	switch left := r.end - r.off - int64(r.width); {
	case zeros(head[:r.width]):
		return zeroHeader, nil
	case !ok:
		return "header of a batch with a wrong checksum or an empty payload", nil
	case int64(h.stored) > left:
		return fmt.Sprintf("batch of %d bytes cut off after %d", h.stored, left), nil
	case h.payload > MaxBatchBytes || h.stored > MaxBatchBytes:
		return "", fault.Unsupportedf("batch of %d bytes, %d as stored; at most %d are read", h.payload,
			h.stored, MaxBatchBytes)
	}
	r.stored = resize(r.stored, int(h.stored))
	if _, err := io.ReadFull(r.in, r.stored); err != nil {
		return "", err
	}
	if crc := coding.CRC32C(r.stored); crc != h.crc {
		return fmt.Sprintf("crc %08x, want %08x", crc, h.crc), nil
	}
	r.off += int64(r.width) + int64(h.stored)
	return "", r.unpack(h)
}

// unpack makes r.rest of a stored payload.
func (r *Reader) unpack(h batchHeader) error {
	if r.codec == compress.None {
		if h.stored != h.payload {
			return fault.Corruptf("payload of %d bytes stored in %d without compression", h.payload, h.stored)
		}
		r.rest = r.stored
		return nil
	}
	if int64(h.payload) > int64(h.stored)*int64(r.codec.MaxRatio()) {
		return fault.Corruptf("payload of %d bytes in %d", h.payload, h.stored)
	}
	r.payload = resize(r.payload, int(h.payload))
	r.rest = r.payload
	return r.codec.Decompress(r.payload, r.stored)
}

// resize returns a slice of n bytes, in b's memory if that is large enough.
func resize(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// checkCount compares the footer's number of entries with the number of entries read.
func (r *Reader) checkCount() {
	if r.Footer != nil && r.Footer.GetNumEntries() != r.entries {
		r.find(r.end, "the footer counts %d entries, there are %d", r.Footer.GetNumEntries(), r.entries)
	}
}

// checkTail returns an error if a batch of entries begins after byte from, which then is not the
// end of the log. Source: tablet spec §18.3. Kudu stops at zeros without a search, and so may lose
// entries after them.
func (r *Reader) checkTail(from int64) error {
	const chunk = 1 << 20
	buf := make([]byte, min(chunk, r.size-from))
	for from++; r.size-from >= int64(r.width); {
		n := min(int64(len(buf)), r.size-from)
		b := buf[:n]
		if _, err := r.file.ReadAt(b, from); err != nil {
			return err
		}
		for i := 0; i+r.width <= len(b); i++ {
			if binary.LittleEndian.Uint32(b[i:]) == 0 {
				continue // a batch is not empty
			}
			if _, ok := parseBatchHeader(b[i:], r.width); ok {
				return fault.Corruptf("an entry follows at byte %d", from+int64(i))
			}
		}
		from += n - int64(r.width) + 1
	}
	return nil
}
