package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	gohash "hash"
	"io"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// A manifest is a sequence of records: an info, the rows of the metadata by key, the records of the
// log by LSN, the blocks by ID, and an end. A record:
//
//	offset  width   field    meaning
//	0       1       kind     below
//	1       3                zero
//	4       4       length   of the payload, bytes
//	8       4       crc      CRC-32C of the 8 bytes before and of the payload
//	12      length  payload
//
// Payload of an info (kind 1):
//
//	0       16      uuid        of the store
//	16      8       timestamp   the image has all write batches up to it
//	24      8       block size  bytes
//	32      8       epoch       number of the newest metadata commit
//	40      8       mark        all block IDs are below it
//	48      8       log start   LSN of the first record of the log
//	56      8       log end     LSN of the last record; log start - 1 without records
//	64      8       blocks      number
//	72      8       bytes       of all blocks
//
// Of a row (kind 2): length of the key in 4 bytes, key, value. Of a record of the log (kind 3): the
// record. Of a block (kind 4):
//
//	0       8       id      of the block in the store
//	8       8       length  bytes
//	16      8       sum     xxh3-64 of its bytes
//	24      32      hash    SHA-256 of its bytes
//
// Of the end (kind 5): the numbers of rows, records, and blocks, 8 bytes each. Nothing follows.
//
// The end of an image without anything:
// 05 00 00 00 18 00 00 00 f2 b8 be 46, then 24 times 00
const (
	recordHeader = 12 // file format: never change
	kindInfo     = 1  // file format: never change
	kindRow      = 2  // file format: never change
	kindRecord   = 3  // file format: never change
	kindBlock    = 4  // file format: never change
	kindEnd      = 5  // file format: never change

	infoLen  = 80 // file format: never change
	blockLen = 56 // file format: never change
	endLen   = 24 // file format: never change

	maxPayload = 1 << 30 // a record of the log is shorter
)

// manifestWriter writes a manifest and computes its hash.
type manifestWriter struct {
	w      *bufio.Writer
	sum    gohash.Hash
	bytes  int64
	counts [kindEnd]uint64
	head   []byte
}

func newManifestWriter(w io.Writer) *manifestWriter {
	m := &manifestWriter{sum: sha256.New()}
	m.w = bufio.NewWriterSize(io.MultiWriter(w, m.sum), 64<<10)
	return m
}

func (m *manifestWriter) record(kind byte, payload ...[]byte) error {
	n := 0
	for _, p := range payload {
		n += len(p)
	}
	if n > maxPayload {
		return fmt.Errorf("manifest: record of %d bytes", n)
	}
	head := append(m.head[:0], kind, 0, 0, 0)
	head = binary.LittleEndian.AppendUint32(head, uint32(n))
	crc := coding.CRC32C(head)
	for _, p := range payload {
		crc = coding.UpdateCRC32C(crc, p)
	}
	m.head = binary.LittleEndian.AppendUint32(head, crc)
	if _, err := m.w.Write(m.head); err != nil {
		return err
	}
	for _, p := range payload {
		if _, err := m.w.Write(p); err != nil {
			return err
		}
	}
	m.bytes += int64(recordHeader + n)
	if kind < kindEnd {
		m.counts[kind]++
	}
	return nil
}

func numbers(list ...uint64) []byte {
	var b []byte
	for _, n := range list {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func (m *manifestWriter) info(i oribi.ImageInfo) error {
	uuid, err := parseUUID(i.UUID)
	if err != nil {
		return err
	}
	return m.record(kindInfo, uuid[:],
		numbers(uint64(i.Timestamp), uint64(i.BlockSize), i.Epoch, i.Mark, uint64(i.LogStart), uint64(i.LogEnd),
			uint64(i.Blocks), uint64(i.BlockBytes)))
}

func (m *manifestWriter) row(key, value []byte) error {
	return m.record(kindRow, binary.LittleEndian.AppendUint32(nil, uint32(len(key))), key, value)
}

func (m *manifestWriter) block(b oribi.ImageBlock, h hash) error {
	return m.record(kindBlock, numbers(b.ID, uint64(b.Length), b.Sum), h[:])
}

// end writes the last record. m.sum and m.bytes are complete afterwards.
func (m *manifestWriter) end() error {
	if err := m.record(kindEnd, numbers(m.counts[kindRow], m.counts[kindRecord], m.counts[kindBlock])); err != nil {
		return err
	}
	return m.w.Flush()
}

// manifestReader reads a manifest record by record. Each payload is verified before it is used.
type manifestReader struct {
	name   string
	raw    io.Reader
	sum    gohash.Hash
	r      *bufio.Reader
	at     int64 // offset of the next record
	info   oribi.ImageInfo
	counts [kindEnd]uint64

	kind    byte // of the record that next has read, 0 = it is used
	payload bytes.Buffer
	ended   bool
}

// newManifestReader reads the info.
func newManifestReader(name string, r io.Reader) (*manifestReader, error) {
	m := &manifestReader{name: name, raw: r, sum: sha256.New()}
	m.r = bufio.NewReaderSize(io.TeeReader(r, m.sum), 64<<10)
	p, err := m.next(kindInfo)
	if err != nil {
		return nil, err
	}
	if p == nil || len(p) != infoLen {
		return nil, m.corrupt("does not begin with an info")
	}
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(p[16+8*i:]) }
	m.info = oribi.ImageInfo{UUID: hex.EncodeToString(p[:16]), Timestamp: mvcc.Timestamp(n(0)),
		BlockSize: int64(n(1)), Epoch: n(2), Mark: n(3),
		LogStart: lsn.LSN(n(4)), LogEnd: lsn.LSN(n(5)), Blocks: int(n(6)), BlockBytes: int64(n(7))}
	return m, nil
}

func (m *manifestReader) corrupt(format string, args ...any) error {
	return fault.Corruptf("%s: byte %d: %s", m.name, m.at, fmt.Sprintf(format, args...))
}

// next returns the payload of the next record if it is of a kind, else nil; the record stays the
// next. The payload is valid until the next call.
func (m *manifestReader) next(kind byte) ([]byte, error) {
	if m.kind == 0 {
		if err := m.read(); err != nil {
			return nil, err
		}
	}
	if m.kind != kind {
		return nil, nil
	}
	m.kind = 0
	if kind < kindEnd {
		m.counts[kind]++
	}
	return m.payload.Bytes(), nil
}

func (m *manifestReader) read() error {
	var head [recordHeader]byte
	if _, err := io.ReadFull(m.r, head[:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return m.corrupt("ends early")
	} else if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	length := int64(binary.LittleEndian.Uint32(head[4:]))
	if head[0] < kindInfo || head[0] > kindEnd || head[1]|head[2]|head[3] != 0 || length > maxPayload {
		return m.corrupt("no record: % x", head)
	}
	m.payload.Reset()
	// The buffer grows with the bytes that are read, not to the length that a damaged record may
	// state.
	if n, err := io.CopyN(&m.payload, m.r, length); errors.Is(err, io.EOF) {
		return m.corrupt("ends early: record of %d bytes has %d", length, n)
	} else if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	crc := coding.UpdateCRC32C(coding.CRC32C(head[:8]), m.payload.Bytes())
	if want := binary.LittleEndian.Uint32(head[8:]); crc != want {
		return m.corrupt("crc %08x, want %08x", crc, want)
	}
	m.kind = head[0]
	m.at += recordHeader + length
	return nil
}

// rows calls fn with the rows, which must come next. fn may keep the slices.
func (m *manifestReader) rows(fn func(key, value []byte) error) error {
	for {
		p, err := m.next(kindRow)
		if p == nil || err != nil {
			return err
		}
		if len(p) < 4 || uint64(binary.LittleEndian.Uint32(p)) > uint64(len(p)-4) {
			return m.corrupt("row of %d bytes", len(p))
		}
		p = bytes.Clone(p)
		n := 4 + binary.LittleEndian.Uint32(p)
		if err := fn(p[4:n:n], p[n:]); err != nil {
			return err
		}
	}
}

// records calls fn with the records of the log, which must come next.
func (m *manifestReader) records(fn func(record []byte) error) error {
	for {
		p, err := m.next(kindRecord)
		if p == nil || err != nil {
			return err
		}
		if err := fn(p); err != nil {
			return err
		}
	}
}

// block returns the next block; ok is false if there is no further one.
func (m *manifestReader) block() (b oribi.ImageBlock, h hash, ok bool, err error) {
	p, err := m.next(kindBlock)
	if p == nil || err != nil {
		return b, h, false, err
	}
	if len(p) != blockLen || int64(binary.LittleEndian.Uint64(p[8:])) < 0 {
		return b, h, false, m.corrupt("not a block")
	}
	b = oribi.ImageBlock{ID: binary.LittleEndian.Uint64(p), Length: int64(binary.LittleEndian.Uint64(p[8:])),
		Sum: binary.LittleEndian.Uint64(p[16:])}
	return b, hash(p[24:]), true, nil
}

// end reads the end, and compares all of the manifest with its summary.
func (m *manifestReader) end(s *Backup) error {
	p, err := m.next(kindEnd)
	if err != nil {
		return err
	}
	if want := numbers(m.counts[kindRow], m.counts[kindRecord], m.counts[kindBlock]); !bytes.Equal(p, want) {
		return m.corrupt("the end is missing, or the manifest has other records than it says")
	}
	if n, err := io.Copy(io.Discard, m.r); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	} else if n > 0 {
		return m.corrupt("%d bytes after the end", n)
	}
	if got := hash(m.sum.Sum(nil)); m.at != s.manifestBytes || got != s.manifest {
		return m.corrupt("SHA-256 %x of %d bytes, want %x of %d", got, m.at, s.manifest, s.manifestBytes)
	}
	return nil
}
