package memrowset

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/mvcc"
)

// The header of a row in the arena. This is memory, not a file format.
//
//	offset  width  field
//	0       8      timestamp of the insertion
//	8       8      ref of the newest link, or 0 before the first change; atomic
//	16      4      length of the key
//	20      4      length of the image
//	24             the key, the row image as inserted
const (
	headerNewestOff = 8
	headerLen       = 24
)

// A link, one change of a row. Immutable once it is linked in.
//
//	offset  width  field
//	0       8      timestamp
//	8       8      ref of the link before it in time, 0 if it is the first
//	16      4      length of the list
//	20      4      length of the image
//	24      1      kind: update, delete, reinsert, replace
//	25      1      low four bits: updates since the last full image, this one among them; 0 if this
//	               link has one. High four bits: the number of the link in its row, modulo 16
//	26             the list of an update, or the first byte of a replacement's list; the image after a
//	               reinsert, a replacement, and every 16th update; if the number is 0, arena.Skips
//	               to earlier links with number 0
//
// The skips lead a reader of an old snapshot over the newer changes of a row in a number of steps that
// grows with the logarithm of their number.
const (
	linkLen       = 26
	imageInterval = 16
	skipInterval  = 16
)

type header []byte
type link []byte

func (m *MemRowSet) header(ref arena.Ref) header { return m.arena.Bytes(ref) }
func (m *MemRowSet) link(ref arena.Ref) link     { return m.arena.Bytes(ref) }

func (m *MemRowSet) newestWord(ref arena.Ref) *atomic.Uint64 {
	return arena.Word(m.header(ref)[headerNewestOff:])
}

// newest returns the ref of the newest link of the row with that header; 0 if it was never changed.
func (m *MemRowSet) newest(ref arena.Ref) arena.Ref { return m.header(ref).newest() }

// newestChange returns whether the row with that header exists, and the timestamp of its newest
// change.
func (m *MemRowSet) newestChange(ref arena.Ref) (live bool, ts mvcc.Timestamp) {
	if newest := m.newest(ref); newest != 0 {
		l := m.link(newest)
		return l.kind() != change.Delete, l.ts()
	}
	return true, m.header(ref).ts()
}

func (h header) ts() mvcc.Timestamp { return mvcc.Timestamp(binary.LittleEndian.Uint64(h)) }

func (h header) newest() arena.Ref { return arena.Ref(arena.Word(h[headerNewestOff:]).Load()) }

func (h header) key() []byte {
	n := binary.LittleEndian.Uint32(h[16:])
	return h[headerLen : headerLen+n : headerLen+n]
}

func (h header) image() []byte {
	_, image := h.inserted()
	return image
}

// inserted returns the key and the image as inserted.
func (h header) inserted() (key, image []byte) {
	sizes := binary.LittleEndian.Uint64(h[16:])
	mid := headerLen + int(uint32(sizes))
	end := mid + int(sizes>>32)
	return h[headerLen:mid:mid], h[mid:end:end]
}

func (l link) ts() mvcc.Timestamp { return mvcc.Timestamp(binary.LittleEndian.Uint64(l)) }
func (l link) older() arena.Ref   { return arena.Ref(binary.LittleEndian.Uint64(l[8:])) }
func (l link) kind() change.Kind  { return change.Kind(l[24]) }
func (l link) sinceImage() int    { return int(l[25] & 0xf) }
func (l link) number() int        { return int(l[25] >> 4) }

func (l link) list() change.List {
	n := binary.LittleEndian.Uint32(l[16:])
	if l.kind() == change.Replace {
		n += binary.LittleEndian.Uint32(l[20:])
	}
	return change.List(l[linkLen : linkLen+n : linkLen+n])
}

// image returns the row after the change, nil if the link has no image.
func (l link) image() []byte {
	n := binary.LittleEndian.Uint32(l[20:])
	if n == 0 {
		return nil
	}
	from := linkLen + binary.LittleEndian.Uint32(l[16:])
	return l[from : from+n : from+n]
}

// allocate allocates n bytes in the arena.
func (m *MemRowSet) allocate(n int) (arena.Ref, []byte) {
	m.alloc.Lock()
	ref, b := m.arena.Alloc(n)
	m.alloc.Unlock()
	return ref, b
}

func (m *MemRowSet) writeHeader(key []byte, ts mvcc.Timestamp, row []byte) arena.Ref {
	ref, b := m.allocate(headerLen + len(key) + len(row))
	putHeader(b, key, ts, row)
	return ref
}

// writeHeaders writes one header for each element of refs, in one allocation, and fills in refs.
func (m *MemRowSet) writeHeaders(refs []arena.Ref, keys [][]byte, ts mvcc.Timestamp, rows [][]byte) {
	size := 0
	for i := range refs {
		size += headerSize(keys[i], rows[i])
	}
	ref, b := m.allocate(size)
	for i := range refs {
		putHeader(b, keys[i], ts, rows[i])
		refs[i] = ref
		n := headerSize(keys[i], rows[i])
		ref += arena.Ref(n)
		b = b[n:]
	}
}

// headerSize returns the size of a header that is followed by another one, whose atomic word must
// be aligned to 8.
func headerSize(key, row []byte) int { return (headerLen + len(key) + len(row) + 7) &^ 7 }

func putHeader(b, key []byte, ts mvcc.Timestamp, row []byte) {
	binary.LittleEndian.PutUint64(b, uint64(ts))
	binary.LittleEndian.PutUint32(b[16:], uint32(len(key)))
	binary.LittleEndian.PutUint32(b[20:], uint32(len(row)))
	copy(b[headerLen:], key)
	copy(b[headerLen+len(key):], row)
}

// addLink makes a change the newest of the row with header ref; older is the previous newest. Only
// the caller changes the row, so the store cannot overwrite another one.
func (m *MemRowSet) addLink(ref, older arena.Ref, ts mvcc.Timestamp, kind change.Kind, list change.List, image []byte) {
	if invariant.Enabled && (m.header(ref).ts() > ts || older != 0 && m.link(older).ts() > ts) {
		panic(fmt.Sprintf("memrowset: %s of key %x at %d, after a later change", kind, m.header(ref).key(), uint64(ts)))
	}
	m.newestWord(ref).Store(uint64(m.newLink(older, ts, kind, list, image)))
}

// newLink returns a new link, which is not linked in yet.
func (m *MemRowSet) newLink(older arena.Ref, ts mvcc.Timestamp, kind change.Kind, list change.List, image []byte) arena.Ref {
	number, size := 1, linkLen+len(list)+len(image)
	if older != 0 {
		number = (m.link(older).number() + 1) % skipInterval
	}
	if number == 0 {
		size += arena.SkipsLen
	}
	at, b := m.allocate(size)
	binary.LittleEndian.PutUint64(b, uint64(ts))
	binary.LittleEndian.PutUint64(b[8:], uint64(older))
	binary.LittleEndian.PutUint32(b[16:], uint32(len(list)))
	binary.LittleEndian.PutUint32(b[20:], uint32(len(image)))
	b[24] = byte(kind)
	b[25] = byte(number << 4)
	if kind == change.Update && image == nil {
		b[25] |= byte(m.sinceImage(older) + 1)
	}
	copy(b[linkLen:], list)
	copy(b[linkLen+len(list):], image)
	if number == 0 {
		before := older
		for before != 0 && m.link(before).number() != 0 {
			before = m.link(before).older()
		}
		arena.SkipsAfter(before, m.skips).Put(b[size-arena.SkipsLen:])
	}
	return at
}

// sinceImage returns the number of updates from the last full image up to the given link.
func (m *MemRowSet) sinceImage(newest arena.Ref) int {
	if newest == 0 {
		return 0
	}
	return m.link(newest).sinceImage()
}

// update adds an UPDATE, with a full image if it is the 16th since the last image.
func (m *MemRowSet) update(ref, newest arena.Ref, ts mvcc.Timestamp, list change.List) {
	var image []byte
	if m.sinceImage(newest) == imageInterval-1 {
		row, _, _ := m.rowAt(m.header(ref), mvcc.Everything, nil)
		image = m.rowFormat.Apply(nil, row, list)
	}
	m.addLink(ref, newest, ts, change.Update, list, image)
}

// skips returns the skips of a link whose number is 0.
func (m *MemRowSet) skips(ref arena.Ref) arena.Skips {
	l := m.link(ref)
	return arena.SkipsIn(l[linkLen+binary.LittleEndian.Uint32(l[16:])+binary.LittleEndian.Uint32(l[20:]):])
}

// newestIn returns the newest link that snap sees of the row with header ref, 0 if it sees none.
func (m *MemRowSet) newestIn(ref arena.Ref, snap mvcc.Snapshot) arena.Ref {
	return m.newestFrom(m.newest(ref), snap)
}

// newestFrom is newestIn for a row with the newest link at.
func (m *MemRowSet) newestFrom(at arena.Ref, snap mvcc.Snapshot) arena.Ref {
	for at != 0 {
		l := m.link(at)
		if snap.Sees(l.ts()) {
			return at
		}
		if l.number() == 0 {
			at = arena.Skip(at, m.skips, func(r arena.Ref) bool { return !snap.Sees(m.link(r).ts()) })
			l = m.link(at)
		}
		at = l.older()
	}
	return 0
}

// rowAt returns the image of the row with header h as of snap. If changes must be applied, it
// appends the image to dst, and grown is the extended dst; otherwise row is memory of the arena and
// grown is dst. live is false if there is no row at snap.
func (m *MemRowSet) rowAt(h header, snap mvcc.Snapshot, dst []byte) (row, grown []byte, live bool) {
	if !snap.Sees(h.ts()) {
		return nil, dst, false
	}
	if at := m.newestFrom(h.newest(), snap); at != 0 {
		return m.changedRow(h, at, dst)
	}
	return h.image(), dst, true
}

// changedRow is rowAt for a row of which at is the newest link to see.
func (m *MemRowSet) changedRow(h header, at arena.Ref, dst []byte) (row, grown []byte, live bool) {
	// lists[next:] are the updates to apply, oldest first; they are found newest first.
	var lists [imageInterval]change.List
	next := len(lists)
	base := []byte(nil)
	for ; at != 0; at = m.link(at).older() {
		l := m.link(at)
		if l.kind() == change.Delete {
			return nil, dst, false // only the newest change can be one: a reinsert, with its image, follows every other
		}
		if base = l.image(); base != nil {
			break
		}
		next--
		lists[next] = l.list()
	}
	if base == nil {
		base = h.image()
	}
	if next == len(lists) {
		return base, dst, true
	}
	from := len(dst)
	dst = m.rowFormat.Apply(dst, base, lists[next:]...)
	return dst[from:len(dst):len(dst)], dst, true
}
