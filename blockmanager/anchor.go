package blockmanager

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
)

// One slot of ANCHOR. The file is two slots and nothing else.
//
//	offset  width  field          meaning
//	0       8      magic          "oribianc"
//	8       2      version        slotVersion
//	10      1      state          1 intent: the commit of this epoch may or may not follow; 2 confirmed
//	11      1                     zero
//	12      4      must know      a reader refuses bits it does not know; none is defined
//	16      4      may ignore     none is defined
//	20      16     instance       the store's
//	36      8      epoch          of the metadata that the slot describes
//	44      16     hash           its set hash: low lane, high lane
//	60      16     previous hash  set hash of the metadata that it follows, in a first slot zero
//	76      4016                  zero
//	4092    4      crc            CRC-32C of the 4092 bytes before
//
// Intent of epoch 2 in instance 0101…01, from the hash (5, 6) to (7, 8):
//
//	6f72696269616e63 0100 01 00 00000000 00000000 01010101010101010101010101010101
//	0200000000000000 07000000000000000800000000000000 05000000000000000600000000000000,
//	4016 times 00, 5c00aec1
//
// The newest slot is the valid one with the higher epoch; of equal epochs, the confirmed one. A
// commit overwrites the other slot, so a torn write leaves the newest intact.
const (
	anchorName      = "ANCHOR"        // file format: never change
	slotMagic       = "oribianc"      // file format: never change
	slotStateOff    = 10              // file format: never change
	slotEpochOff    = pageInstanceEnd // file format: never change
	slotHashOff     = 44              // file format: never change
	slotPreviousOff = 60              // file format: never change
	slotZeroOff     = 76              // file format: never change
	slotLen         = pageLen         // file format: never change

	slotVersion   = 1
	slotIntent    = 1 // file format: never change
	slotConfirmed = 2 // file format: never change

	// maxEpoch keeps "one above the highest" from wrapping; no store gets there.
	maxEpoch = 1 << 62
)

// slot is the content of one slot.
type slot struct {
	state    byte // slotIntent or slotConfirmed; 0 = the slot is invalid
	root          // epoch and hash
	previous setHash
}

func (s *slot) good() bool { return s.state != 0 }

func (s *slot) encode(instance [16]byte) []byte {
	p := newPage(slotMagic, slotVersion, instance)
	p[slotStateOff] = s.state
	binary.LittleEndian.PutUint64(p[slotEpochOff:], s.epoch)
	binary.LittleEndian.PutUint64(p[slotHashOff:], s.hash.lo)
	binary.LittleEndian.PutUint64(p[slotHashOff+8:], s.hash.hi)
	binary.LittleEndian.PutUint64(p[slotPreviousOff:], s.previous.lo)
	binary.LittleEndian.PutUint64(p[slotPreviousOff+8:], s.previous.hi)
	return sealPage(p)
}

// decodeSlot reads slotLen bytes.
func decodeSlot(p []byte, instance [16]byte) (s slot, err error) {
	if err := checkPage(p, slotMagic, slotVersion, instance); err != nil {
		return s, err
	}
	r := slot{state: p[slotStateOff], root: root{epoch: binary.LittleEndian.Uint64(p[slotEpochOff:])}}
	r.hash = setHash{binary.LittleEndian.Uint64(p[slotHashOff:]), binary.LittleEndian.Uint64(p[slotHashOff+8:])}
	r.previous = setHash{binary.LittleEndian.Uint64(p[slotPreviousOff:]),
		binary.LittleEndian.Uint64(p[slotPreviousOff+8:])}
	if r.state != slotIntent && r.state != slotConfirmed || r.epoch == 0 || r.epoch >= maxEpoch ||
		p[slotStateOff+1] != 0 || !allZero(p[slotZeroOff:pageCRCOff]) {
		return s, fault.Corruptf("fields out of range")
	}
	return r, nil
}

// newestSlot returns the index of the newest valid slot, -1 if none is valid.
func newestSlot(s *[2]slot) int {
	switch a, b := &s[0], &s[1]; {
	case !a.good() && !b.good():
		return -1
	case !b.good():
		return 0
	case !a.good():
		return 1
	case a.epoch != b.epoch:
		if a.epoch > b.epoch {
			return 0
		}
		return 1
	case a.state == slotConfirmed:
		return 0
	default:
		return 1
	}
}

// accepts reports whether the newest slot s allows metadata at r. The metadata's own hash has been
// checked.
//
// Of the earlier states only the one from which an unfinished commit started is accepted. A later
// state is safe: nothing that it needs was removed on account of an older slot.
func (s *slot) accepts(r root) bool {
	switch {
	case r.epoch == s.epoch:
		return r.hash == s.hash
	case r.epoch > s.epoch:
		return true
	default:
		return s.state == slotIntent && r.hash == s.previous
	}
}

// confirms reports whether r is the only state with blocks that the slot accepts. If so, what only
// an older state needs may be removed.
func (s *slot) confirms(r root) bool {
	return r.epoch < s.epoch || r.epoch == s.epoch && s.state == slotConfirmed
}

// anchor is ANCHOR, read and, for a writer, open. Guarded by Manager.commitMu.
type anchor struct {
	instance [16]byte
	file     vfs.File // nil until openForWrite
	slots    [2]slot
	problems [2]error // why a slot is invalid
	highest  uint64   // highest epoch ever seen in a slot
}

// readAnchor reads ANCHOR. Errors: ErrCorrupt if there is no file or no valid slot, ErrUnsupported
// if a slot has a newer version.
func readAnchor(o *Options) (*anchor, error) {
	f, err := o.FS.Open(o.anchorPath(), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Corruptf("%s: missing", anchorName)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", anchorName, err)
	}
	defer f.Close()
	return decodeAnchor(f, o.Instance)
}

func decodeAnchor(f vfs.File, instance [16]byte) (*anchor, error) {
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", anchorName, err)
	}
	if size != 2*slotLen {
		return nil, fault.Corruptf("%s: %d bytes long, want %d", anchorName, size, 2*slotLen)
	}
	a := &anchor{instance: instance}
	buf := make([]byte, slotLen)
	for i := range a.slots {
		if n, err := f.ReadAt(buf, int64(i)*slotLen); n < slotLen {
			return nil, fmt.Errorf("%s: slot %d: %w", anchorName, i, noEOF(err))
		}
		s, err := decodeSlot(buf, instance)
		if errors.Is(err, fault.ErrUnsupported) {
			return nil, fmt.Errorf("%s: slot %d: %w", anchorName, i, err)
		}
		a.slots[i], a.problems[i] = s, err
		a.highest = max(a.highest, s.epoch)
	}
	if newestSlot(&a.slots) < 0 {
		return nil, fmt.Errorf("%s: no valid slot: %w", anchorName, errors.Join(a.problems[:]...))
	}
	return a, nil
}

// newest returns the newest valid slot.
func (a *anchor) newest() *slot { return &a.slots[newestSlot(&a.slots)] }

// openForWrite opens the file, writes the newest slot again in place, and syncs it: what was read
// may exist only in the kernel's page cache, where it looks clean after a failed fsync of another
// process. If a crash during a write has torn the other slot, openForWrite then gives it the same
// content.
func (a *anchor) openForWrite(o *Options) error {
	f, err := o.FS.Open(o.anchorPath(), true)
	if err != nil {
		return fmt.Errorf("%s: %w", anchorName, err)
	}
	i := newestSlot(&a.slots)
	if _, err = f.WriteAt(a.slots[i].encode(a.instance), int64(i)*slotLen); err == nil {
		err = f.Sync()
	}
	if other := 1 - i; err == nil && !a.slots[other].good() {
		if _, err = f.WriteAt(a.slots[i].encode(a.instance), int64(other)*slotLen); err == nil {
			err = f.Sync()
		}
		a.slots[other], a.problems[other] = a.slots[i], nil
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("%s: slot %d: %w", anchorName, i, err)
	}
	a.file = f
	return nil
}

// write writes s to the slot that is not the newest, and syncs. If only the write failed, not the
// sync, synced is false and the newest slot is intact.
func (a *anchor) write(s slot) (synced bool, err error) {
	i := 1 - newestSlot(&a.slots)
	a.slots[i] = slot{}
	if _, err := a.file.WriteAt(s.encode(a.instance), int64(i)*slotLen); err != nil {
		return false, fmt.Errorf("%s: slot %d: %w", anchorName, i, err)
	}
	a.highest = max(a.highest, s.epoch)
	if err := a.file.Sync(); err != nil {
		return true, fmt.Errorf("%s: slot %d: sync: %w", anchorName, i, err)
	}
	a.slots[i], a.problems[i] = s, nil
	return true, nil
}

// createAnchor creates ANCHOR with one confirmed state in both slots and syncs it, but not its
// name.
func createAnchor(o *Options, r root) error {
	f, err := o.FS.Create(o.anchorPath())
	if err != nil {
		return fmt.Errorf("%s: %w", anchorName, err)
	}
	p := (&slot{state: slotConfirmed, root: r}).encode(o.Instance)
	if _, err = f.WriteAt(append(p, p...), 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", anchorName, err)
	}
	return nil
}

// noEOF turns the end of the file, or a nil error of a short read, into ErrCorrupt.
func noEOF(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return fault.Corruptf("file ends early")
	}
	return err
}
