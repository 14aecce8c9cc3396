package delta

import (
	"encoding/binary"
	"slices"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// foldEvery is how many changes of one row are between two folds. A reader of the newest state
// walks at most this many links; a fold costs one more list of all columns that were changed.
const foldEvery = 64

// link is one change of one row, in the arena of a MemStore. The links of a row hang together from
// the newest to the oldest:
//
//	        newest                                                 oldest
//	item ─▶ 130 ─▶ 129 ─▶ 128* ─▶ 127 ─▶ …  ─▶ 64* ─▶ 63 ─▶ … ─▶ 1
//	                       │                     ▲
//	                       └──── previous fold ──┘            * folded
//
// A folded link also carries a list with the newest value of every column that was changed up to
// and with this link, so no older link need be read; and it names the previous folded link, so
// that a reader of an old snapshot gets past a thousand newer changes in some sixteen steps. Links
// never change once a reader can reach them.
type link struct {
	store *arena.Arena
	b     []byte // from the link's first byte; its lengths say where it ends
}

// Layout of a link in memory, by offset: timestamp, name of the link before, length of the list,
// number of the change among those of its row modulo foldEvery; then the list. A folded link,
// number 0, goes on with the name of the previous folded link, the length of the fold, and the
// fold.
const (
	linkTS     = 0
	linkPrev   = 8
	linkLen    = 16
	linkNumber = 20
	linkList   = 24

	foldPrev = 0
	foldLen  = 8
	foldList = 12
)

func linkAt(store *arena.Arena, ref arena.Ref) link { return link{store, store.Bytes(ref)} }

func (l link) ts() mvcc.Timestamp {
	return mvcc.Timestamp(binary.LittleEndian.Uint64(l.b[linkTS:]))
}
func (l link) prev() arena.Ref { return arena.Ref(binary.LittleEndian.Uint64(l.b[linkPrev:])) }
func (l link) number() uint32  { return binary.LittleEndian.Uint32(l.b[linkNumber:]) }
func (l link) folded() bool    { return l.number() == 0 }

// list is the change itself. It aliases the arena.
func (l link) list() change.List { return l.b[linkList:l.listEnd():l.listEnd()] }

func (l link) listEnd() int { return linkList + int(binary.LittleEndian.Uint32(l.b[linkLen:])) }

// fold is all changes up to and with this link as one update, empty when none of them is an update.
// Of folded links only.
func (l link) fold() change.List {
	f := l.b[l.listEnd():]
	end := foldList + int(binary.LittleEndian.Uint32(f[foldLen:]))
	return f[foldList:end:end]
}

// prevFold is the nearest folded link before this one, 0 if there is none. Of folded links only.
func (l link) prevFold() arena.Ref {
	return arena.Ref(binary.LittleEndian.Uint64(l.b[l.listEnd()+foldPrev:]))
}

// addLink puts a link in front of newest, which is 0 for the first change of a row.
func addLink(store *arena.Arena, newest arena.Ref, ts mvcc.Timestamp, list change.List) arena.Ref {
	var number uint32 = 1
	if newest != 0 {
		number = (linkAt(store, newest).number() + 1) % foldEvery
	}
	size := linkList + len(list)
	var fold change.List
	var before arena.Ref
	if number == 0 {
		before, fold = foldOf(store, newest, list)
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
		binary.LittleEndian.PutUint64(f[foldPrev:], uint64(before))
		binary.LittleEndian.PutUint32(f[foldLen:], uint32(len(fold)))
		copy(f[foldList:], fold)
	}
	return ref
}

// foldOf makes one update of list and all changes from newest back, and finds the folded link that
// it began with. A delete sets no column; it is the last change of its row and is found in front.
func foldOf(store *arena.Arena, newest arena.Ref, list change.List) (before arena.Ref, fold change.List) {
	lists := [foldEvery + 1]change.List{list}
	n := 1
	for ref := newest; ref != 0; {
		l := linkAt(store, ref)
		if l.folded() {
			before = ref
			lists[n] = l.fold()
			n++
			break
		}
		lists[n] = l.list()
		n++
		ref = l.prev()
	}
	// From the newest list to the oldest: the value met first is the one that counts.
	seen := make(map[schema.ColumnID]bool)
	for _, l := range lists[:n] {
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
			cell, _ := l.Find(id) // the last, if the list has the column twice
			fold = change.AppendColumn(fold, id, cell)
		}
	}
	return before, fold
}

// newestBefore finds the newest link with a timestamp below snap, 0 if there is none.
func newestBefore(store *arena.Arena, ref arena.Ref, snap mvcc.Snapshot) arena.Ref {
	for ref != 0 {
		l := linkAt(store, ref)
		if snap.Sees(l.ts()) {
			return ref
		}
		ref = l.prev()
		if !l.folded() {
			continue
		}
		// All between two folds is passed over when the older fold is still too new.
		if before := l.prevFold(); before != 0 && !snap.Sees(linkAt(store, before).ts()) {
			ref = before
		}
	}
	return 0
}

// appendState appends the lists that make the state of a row as of the link ref, oldest first: the
// nearest fold and what came after it.
func appendState(dst []change.List, store *arena.Arena, ref arena.Ref) []change.List {
	from := len(dst)
	for ref != 0 {
		l := linkAt(store, ref)
		list := l.list()
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

// appendChanges appends every change of a row from the link ref back, oldest first.
func appendChanges(dst []change.Delta, store *arena.Arena, row uint32, ref arena.Ref) []change.Delta {
	from := len(dst)
	for ref != 0 {
		l := linkAt(store, ref)
		dst = append(dst, change.Delta{Row: row, TS: l.ts(), List: l.list()})
		ref = l.prev()
	}
	slices.Reverse(dst[from:])
	return dst
}
