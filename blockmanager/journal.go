package blockmanager

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
	"github.com/zeebo/xxh3"
)

// JOURNAL repeats the metadata. OpenDamaged reads it if meta/ is lost, Verify checks it, and
// followers read the changes in it, see catchUp. Nothing depends on it. It is a sequence of records,
// each at a multiple of 8: first all rows, then the changes of one commit after the other. A clean
// close syncs it and ends it with a seal.
//
//	offset  width  field     meaning
//	0       8      magic     "oribijnl"
//	8       2      version   journalVersion
//	10      1      kind      1 all rows, 2 changes, 3 the seal, without rows
//	11      1                zero
//	12      4      must know a reader refuses bits it does not know; none is defined
//	16      16     instance  the store's
//	32      8      epoch     of the metadata after this record
//	40      8      previous  epoch of the metadata before the changes; the same as epoch in the seal;
//	                         0 in a record of all rows
//	48      8      length    of the payload
//	56      8      sum       xxh3-64 of the payload
//	64      4      crc       CRC-32C of the 64 bytes before
//	68      4                zero
//	72             payload: the rows, the root row among them, each as
//	               varint  length of the key
//	               key
//	               varint  length of the value plus 1, or 0 if the row is removed
//	               value
//
// Zeros up to a multiple of 8 follow. A row with key 66 and value 01: 01 66 02 01.
const (
	journalMagic       = "oribijnl" // file format: never change
	journalVersionOff  = 8          // file format: never change
	journalKindOff     = 10         // file format: never change
	journalMustOff     = 12         // file format: never change
	journalInstanceOff = 16         // file format: never change
	journalEpochOff    = 32         // file format: never change
	journalPreviousOff = 40         // file format: never change
	journalLengthOff   = 48         // file format: never change
	journalSumOff      = 56         // file format: never change
	journalCRCOff      = 64         // file format: never change
	journalHeaderLen   = 72         // file format: never change

	journalVersion = 1
	journalAll     = 1 // file format: never change
	journalChanges = 2 // file format: never change
	journalSeal    = 3 // file format: never change
)

// Names in the directory of a store.
const (
	JournalName    = "JOURNAL"     // file format: never change
	JournalNewName = "JOURNAL.new" // while it is written
)

// journalSlack is how many bytes of changes a journal may have, besides as many as rows, before it
// is written anew.
const journalSlack = 1 << 20

// journal is the journal of a writer. It is redundant: if it cannot be written, nothing else fails.
// It is not synced after each commit; a power cut may take all but its first record.
type journal struct {
	file  vfs.File // nil: the next commit writes all rows
	size  int64
	all   int64 // of the record of all rows
	epoch uint64
}

// journalRecord returns a record.
func journalRecord(o *Options, kind byte, epoch, previous uint64, payload []byte) []byte {
	b := make([]byte, journalHeaderLen, alignUp(journalHeaderLen+int64(len(payload)), 8))
	copy(b, journalMagic)
	le := binary.LittleEndian
	le.PutUint16(b[journalVersionOff:], journalVersion)
	b[journalKindOff] = kind
	copy(b[journalInstanceOff:], o.Instance[:])
	le.PutUint64(b[journalEpochOff:], epoch)
	le.PutUint64(b[journalPreviousOff:], previous)
	le.PutUint64(b[journalLengthOff:], uint64(len(payload)))
	le.PutUint64(b[journalSumOff:], xxh3.Hash(payload))
	le.PutUint32(b[journalCRCOff:], coding.CRC32C(b[:journalCRCOff]))
	b = append(b, payload...)
	return b[:cap(b)]
}

func appendJournalRow(dst, key, value []byte) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(key))), key...)
	if value == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(value))+1), value...)
}

// record adds a commit that was installed. The caller holds commitMu.
func (j *journal) record(m *Manager, p *plan, previous uint64) {
	if m.poison.is() {
		return
	}
	var err error
	if j.file == nil || j.size > 2*j.all+journalSlack {
		err = j.rewrite(m)
	} else {
		var payload []byte
		for _, op := range p.ops {
			payload = appendJournalRow(payload, op.key, op.value)
		}
		err = j.append(journalRecord(&m.o, journalChanges, p.root.epoch, previous, payload))
	}
	j.epoch = p.root.epoch
	if err != nil {
		m.o.Logger.Warn("the copy of the metadata was not written; the next commit tries again", "err", err)
		j.close()
	}
}

// seal ends the journal of a clean close. Without it, nothing after the first record is known to
// have reached the disk.
func (j *journal) seal(m *Manager) {
	if j.file == nil {
		return
	}
	err := j.file.Sync() // before the seal, which proves it
	if err == nil {
		err = j.append(journalRecord(&m.o, journalSeal, j.epoch, j.epoch, nil))
	}
	if err != nil {
		m.o.Logger.Warn("the copy of the metadata was not completed", "err", err)
	}
}

func (j *journal) append(b []byte) error {
	_, err := j.file.WriteAt(b, j.size)
	j.size += int64(len(b))
	return err
}

// rewrite writes all rows to a new file that replaces the journal.
func (j *journal) rewrite(m *Manager) error {
	j.close()
	var payload []byte
	m.state.each(func(key, value []byte) { payload = appendJournalRow(payload, key, value) })
	b := journalRecord(&m.o, journalAll, m.state.epoch, 0, payload)
	if free := m.o.FS.FreeBytes(m.o.Dir); free >= 0 && free < KeepFree+int64(len(b)) {
		return fmt.Errorf("%d bytes are free on the disk: %w", free, fault.ErrNoSpace)
	}
	name := m.o.journalPath(JournalNewName)
	if err := m.o.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := m.o.FS.Create(name)
	if err != nil {
		return err
	}
	j.file, j.size, j.all = f, 0, int64(len(b))
	if err = j.append(b); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = m.o.FS.Rename(name, m.o.journalPath(JournalName))
	}
	return err
}

func (j *journal) close() {
	if j.file != nil {
		j.file.Close()
		j.file = nil
	}
}

// each calls fn with each row of the metadata, the root row included.
func (s *state) each(fn func(key, value []byte)) {
	for id, b := range s.blocks {
		fn(blockKey(id), b.value())
	}
	for id, c := range s.containers {
		fn(containerKey(id), c.row.value())
	}
	for _, key := range slices.Sorted(maps.Keys(s.dead)) {
		fn([]byte(key), s.value([]byte(key)))
	}
	for _, kind := range []byte{kindFormat, kindMark, kindLogStart} {
		fn([]byte{kind}, s.value([]byte{kind}))
	}
	for _, r := range s.caller.withPrefix("") {
		fn(userKey([]byte(r.key)), r.value)
	}
	fn([]byte{kindRoot}, s.root.value())
}

// journalState is the state of the metadata after the records of a journal.
type journalState struct {
	rows     map[string][]byte
	epoch    uint64
	instance [16]byte
	strict   bool // bytes without a meaning must be zero
	sealed   bool
	// at is the offset after the last record that was read. problem says why reading ended there,
	// if the file is longer.
	at      int64
	problem string
}

// readJournal reads the records of a journal up to the first that is damaged, torn, or does not
// follow. instance is the store's ID; if it is zero, a journal of any store is read. Errors of
// reading the file are returned as they are.
func readJournal(fsys vfs.FS, name string, instance [16]byte) (*journalState, error) {
	f, err := fsys.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	j := &journalState{instance: instance}
	if err := j.readAll(f, size); err != nil {
		j.problem = fmt.Sprintf("byte %d: %v", j.at, err)
	}
	if j.rows == nil {
		return nil, fault.Corruptf("%s: %s", JournalName, j.problem)
	}
	return j, nil
}

// readAll reads records until it finds a record that is damaged, torn, or does not follow the
// record before.
func (j *journalState) readAll(f vfs.File, size int64) error {
	for j.at < size {
		n, err := j.read(f, j.at, size)
		if err != nil {
			return err
		}
		j.at += n
	}
	if j.rows == nil {
		return fault.Corruptf("no record")
	}
	return nil
}

// journalHead is the header of a record.
type journalHead struct {
	kind            byte
	instance        [16]byte
	epoch, previous uint64
	length          int64 // of the payload
	sum             uint64
	zero            bool // the bytes without a meaning are zero
}

// size returns the length of the record, including the zeros up to the next record.
func (h *journalHead) size() int64 { return alignUp(journalHeaderLen+h.length, 8) }

// readJournalHead reads the header of the record at off. instance is the store's; zero: any.
func readJournalHead(f vfs.File, off, size int64, instance [16]byte) (h journalHead, err error) {
	head := make([]byte, journalHeaderLen)
	if n, err := f.ReadAt(head, off); n < len(head) {
		return h, noEOF(err)
	}
	le := binary.LittleEndian
	h = journalHead{kind: head[journalKindOff], instance: [16]byte(head[journalInstanceOff:]),
		epoch:    le.Uint64(head[journalEpochOff:]),
		previous: le.Uint64(head[journalPreviousOff:]), length: int64(le.Uint64(head[journalLengthOff:])),
		sum:  le.Uint64(head[journalSumOff:]),
		zero: allZero(head[journalKindOff+1:journalMustOff]) && allZero(head[journalCRCOff+4:])}
	switch {
	case string(head[:len(journalMagic)]) != journalMagic ||
		le.Uint32(head[journalCRCOff:]) != coding.CRC32C(head[:journalCRCOff]):
		return h, fault.Corruptf("no record")
	case le.Uint16(head[journalVersionOff:]) != journalVersion || le.Uint32(head[journalMustOff:]) != 0:
		return h, fault.Unsupportedf("record of a newer version")
	case instance != [16]byte{} && instance != h.instance:
		return h, fault.Corruptf("record of another store")
	case h.length < 0 || h.length > size-off-journalHeaderLen:
		return h, fault.Corruptf("record of %d bytes, the file has %d more", h.length, size-off-journalHeaderLen)
	}
	return h, nil
}

// read reads the payload of the record at off.
func (h *journalHead) read(f vfs.File, off int64) ([]byte, error) {
	payload := make([]byte, h.length)
	if n, err := f.ReadAt(payload, off+journalHeaderLen); int64(n) < h.length {
		return nil, noEOF(err)
	}
	if xxh3.Hash(payload) != h.sum {
		return nil, fault.Corruptf("checksum of a record")
	}
	return payload, nil
}

// read reads the record at off and returns its length.
func (j *journalState) read(f vfs.File, off, size int64) (int64, error) {
	h, err := readJournalHead(f, off, size, j.instance)
	if err != nil {
		return 0, err
	}
	payload, err := h.read(f, off)
	if err != nil {
		return 0, err
	}
	if j.strict {
		pad := make([]byte, h.size()-journalHeaderLen-h.length)
		if n, err := f.ReadAt(pad, off+journalHeaderLen+h.length); n < len(pad) {
			return 0, noEOF(err)
		}
		if !h.zero || !allZero(pad) {
			return 0, fault.Corruptf("bytes that should be zero")
		}
	}
	switch {
	case h.kind == journalAll && j.rows == nil:
		j.rows = map[string][]byte{}
	case h.kind == journalSeal && j.rows != nil && !j.sealed && h.previous == j.epoch && h.epoch == j.epoch &&
		h.length == 0:
		j.sealed = true
	case h.kind != journalChanges || j.rows == nil || j.sealed || h.previous != j.epoch:
		return 0, fault.Corruptf("record of epoch %d after %d, want one after %d", h.epoch, h.previous, j.epoch)
	}
	j.instance, j.epoch = h.instance, h.epoch
	return h.size(), journalRows(payload, func(key, value []byte) {
		if value == nil {
			delete(j.rows, string(key))
		} else {
			j.rows[string(key)] = value
		}
	})
}

// journalRows calls fn with each row of a payload; a nil value is a row that is removed. The slices
// are parts of the payload.
func journalRows(payload []byte, fn func(key, value []byte)) error {
	for len(payload) > 0 {
		n, k := binary.Uvarint(payload)
		if k <= 0 || n > uint64(len(payload)-k) {
			return fault.Corruptf("key of a row")
		}
		key := payload[k : uint64(k)+n]
		payload = payload[uint64(k)+n:]
		n, k = binary.Uvarint(payload)
		if k <= 0 || n > uint64(len(payload)-k)+1 {
			return fault.Corruptf("value of a row")
		}
		if payload = payload[k:]; n == 0 {
			fn(key, nil)
			continue
		}
		fn(key, payload[:n-1:n-1])
		payload = payload[n-1:]
	}
	return nil
}

// load returns the metadata of the journal.
func (j *journalState) load(o *Options) (*state, error) {
	l := newLoader()
	for _, key := range slices.Sorted(maps.Keys(j.rows)) {
		if err := l.row([]byte(key), j.rows[key]); err != nil {
			return nil, err
		}
	}
	st, err := l.finish(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", JournalName, err)
	}
	return st, nil
}
