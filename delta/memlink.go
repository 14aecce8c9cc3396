package delta

import (
	"encoding/binary"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// foldEvery is the number of changes of one row between two folds. A reader of the newest state
// follows at most this many links, fewer if it meets a replacement. A fold costs one additional
// list of all columns that have changed.
const foldEvery = 64

// link is one change of one row, in the arena of a MemStore. The links of a row are chained from
// the newest to the oldest:
//
//	        newest                                                 oldest
//	item ─▶ 130 ─▶ 129 ─▶ 128* ─▶ 127 ─▶ …  ─▶ 64* ─▶ 63 ─▶ … ─▶ 1
//	                       │                     ▲
//	                       └──── previous fold ──┘            * folded
//
// A folded link also has a list with the newest value of every column that changed up to and
// including this link, so no older link need be read: an update, or a replacement if one of the
// changes is. A folded link that is a replacement needs no such list. A folded link also refers to
// earlier folded links, so a reader of an old snapshot skips the newer changes in a number of steps
// that grows with the logarithm of their number. Links never change once a reader can reach them.
type link struct {
	store *arena.Arena
	b     []byte // from the link's first byte; the lengths in it determine its end
}

// Layout of a link in memory, by offset: timestamp, reference to the previous link, length of the
// list, number of the change within its row modulo foldEvery; then the list. In a folded link,
// number 0, arena.Skips to earlier folded links, the length of the fold, and the fold follow.
const (
	linkTS     = 0
	linkPrev   = 8
	linkLen    = 16
	linkNumber = 20
	linkList   = 24

	foldLen  = arena.SkipsLen
	foldList = foldLen + 4
)

func linkAt(store *arena.Arena, ref arena.Ref) link { return link{store, store.Bytes(ref)} }

func (l link) ts() mvcc.Timestamp {
	return mvcc.Timestamp(binary.LittleEndian.Uint64(l.b[linkTS:]))
}
func (l link) prev() arena.Ref { return arena.Ref(binary.LittleEndian.Uint64(l.b[linkPrev:])) }
func (l link) number() uint32  { return binary.LittleEndian.Uint32(l.b[linkNumber:]) }
func (l link) folded() bool    { return l.number() == 0 }

// list returns the change. It aliases the arena.
func (l link) list() change.List { return l.b[linkList:l.listEnd():l.listEnd()] }

func (l link) listEnd() int { return linkList + int(binary.LittleEndian.Uint32(l.b[linkLen:])) }

// fold returns all changes up to and including this link as one update or replacement, empty if
// none of them is an update, or if the link is a replacement. l must be folded.
func (l link) fold() change.List {
	f := l.b[l.listEnd():]
	end := foldList + int(binary.LittleEndian.Uint32(f[foldLen:]))
	return f[foldList:end:end]
}

// skips returns the references of a folded link to earlier folded links.
func (l link) skips() arena.Skips { return arena.SkipsIn(l.b[l.listEnd():]) }

// skipsIn returns a function that returns the skips of folded links.
func skipsIn(store *arena.Arena) func(arena.Ref) arena.Skips {
	return func(ref arena.Ref) arena.Skips { return linkAt(store, ref).skips() }
}

// addLink adds a link before newest, which is 0 for the first change of a row.
func (m *MemStore) addLink(newest arena.Ref, ts mvcc.Timestamp, list change.List) arena.Ref {
	store := m.changes
	var number uint32 = 1
	if newest != 0 {
		number = (linkAt(store, newest).number() + 1) % foldEvery
	}
	size := linkList + len(list)
	var fold change.List
	var before arena.Ref
	if number == 0 {
		before, fold = m.foldOf(newest, list)
		size += foldList + len(fold)
	}
	ref, b := store.Alloc(size)
	binary.LittleEndian.PutUint64(b[linkTS:], uint64(ts))
	binary.LittleEndian.PutUint64(b[linkPrev:], uint64(newest))
	binary.LittleEndian.PutUint32(b[linkLen:], uint32(len(list)))
	binary.LittleEndian.PutUint32(b[linkNumber:], number)
	copy(b[linkList:], list)
	if number == 0 {
		f := b[linkList+len(list):]
		arena.SkipsAfter(before, skipsIn(store)).Put(f)
		binary.LittleEndian.PutUint32(f[foldLen:], uint32(len(fold)))
		copy(f[foldList:], fold)
	}
	return ref
}

// chain makes first, a link that addLink made as the first of its row and that no reader can have
// reached, the one after newest. It returns the link, which is another one if it is folded.
func (m *MemStore) chain(first, newest arena.Ref, ts mvcc.Timestamp, list change.List) arena.Ref {
	number := (linkAt(m.changes, newest).number() + 1) % foldEvery
	if number == 0 {
		return m.addLink(newest, ts, list) // a fold makes it longer
	}
	b := m.changes.Bytes(first)
	binary.LittleEndian.PutUint64(b[linkPrev:], uint64(newest))
	binary.LittleEndian.PutUint32(b[linkNumber:], number)
	return first
}

// foldOf combines list and all changes from newest back into one list, and returns the previous
// folded link. A delete sets no column; it can only be the last change of its row.
func (m *MemStore) foldOf(newest arena.Ref, list change.List) (before arena.Ref, fold change.List) {
	before = newest
	for before != 0 {
		l := linkAt(m.changes, before)
		if l.folded() {
			break
		}
		before = l.prev()
	}
	var few [foldEvery + 1]change.List
	lists := append(appendState(few[:0], m.changes, newest), list) // oldest first
	switch first := lists[0]; {
	case list.Kind() == change.Replace:
		return before, nil
	case first.Kind() == change.Replace:
		return before, m.format.Apply([]byte{byte(change.Replace)}, first.Image(), lists[1:]...)
	}
	return before, combine(lists)
}

// combine returns updates, oldest first, as one update. It is empty if lists is.
func combine(lists []change.List) (fold change.List) {
	// From the newest list to the oldest: the first value found is the newest.
	seen := make(map[schema.ColumnID]bool)
	for _, l := range slices.Backward(lists) {
		for columns := l.Columns(); ; {
			id, _, ok := columns.Next()
			if !ok {
				break
			}
			if seen[id] {
				continue
			}
			seen[id] = true
			if len(fold) == 0 {
				fold = change.AppendUpdateHeader(nil, change.Update)
			}
			cell, _ := l.Find(id) // the last value, if the list contains the column twice
			fold = change.AppendColumn(fold, id, cell)
		}
	}
	return fold
}

// newestBefore returns the newest link with a timestamp below snap, or 0 if all are at or above
// snap.
func newestBefore(store *arena.Arena, ref arena.Ref, snap mvcc.Snapshot) arena.Ref {
	for ref != 0 {
		l := linkAt(store, ref)
		if snap.Sees(l.ts()) {
			return ref
		}
		if l.folded() { // all links before the earliest fold that is too new are skipped
			l = linkAt(store, arena.Skip(ref, skipsIn(store), func(r arena.Ref) bool {
				return !snap.Sees(linkAt(store, r).ts())
			}))
		}
		ref = l.prev()
	}
	return 0
}

// appendState appends the lists that determine the state of a row as of the link ref, oldest first:
// the nearest fold or replacement and all later changes.
func appendState(dst []change.List, store *arena.Arena, ref arena.Ref) []change.List {
	from := len(dst)
	for ref != 0 {
		l := linkAt(store, ref)
		list := l.list()
		if list.Kind() == change.Replace {
			dst = append(dst, list)
			break
		}
		if !l.folded() {
			dst = append(dst, list)
			ref = l.prev()
			continue
		}
		if list.Kind() == change.Delete {
			dst = append(dst, list)
		}
		if fold := l.fold(); len(fold) > 0 {
			dst = append(dst, fold)
		}
		break
	}
	slices.Reverse(dst[from:])
	return dst
}

// appendChanges appends every change of a row up to the link ref, oldest first, as files contain
// them. The updates that take the place of replacements are appended to buf.
func (m *MemStore) appendChanges(dst []change.Delta, buf []byte, row batch.Ordinal,
	ref arena.Ref) ([]change.Delta, []byte) {
	from := len(dst)
	for ref != 0 {
		l := linkAt(m.changes, ref)
		list := l.list()
		if list.Kind() == change.Replace {
			at := len(buf)
			buf = m.format.AppendUpdate(buf, list.Image())
			list = buf[at:len(buf):len(buf)]
		}
		dst = append(dst, change.Delta{Row: uint32(row), TS: l.ts(), List: list})
		ref = l.prev()
	}
	slices.Reverse(dst[from:])
	return dst, buf
}
