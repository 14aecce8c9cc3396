package blockmanager

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/dump"
	"github.com/oribi-db/oribi/internal/fault"
)

// DumpAnchor prints the bytes of an ANCHOR with their meaning, even if it is damaged. Errors:
// ErrCorrupt if data does not have the length of an ANCHOR.
func DumpAnchor(w io.Writer, data []byte) error {
	if len(data) != 2*slotLen {
		return fault.Corruptf("%s: %d bytes long, want %d", anchorName, len(data), 2*slotLen)
	}
	d := dump.New(w)
	for i := range 2 {
		p := data[i*slotLen:][:slotLen]
		off := int64(i) * slotLen
		field := func(from, to int, format string, args ...any) {
			d.Field(off+int64(from), p[from:to], format, args...)
		}
		s, err := decodeSlot(p, [16]byte(p[pageInstanceOff:]))
		d.Section("slot %d", i)
		field(0, pageVersionOff, "magic")
		field(pageVersionOff, slotStateOff, "version %d", binary.LittleEndian.Uint16(p[pageVersionOff:]))
		field(slotStateOff, slotStateOff+1, "state: %s", slotStates[p[slotStateOff]])
		field(slotStateOff+1, pageMustOff, "zero")
		field(pageMustOff, pageMayOff, "flags a reader must know")
		field(pageMayOff, pageInstanceOff, "flags a reader may ignore")
		field(pageInstanceOff, slotEpochOff, "instance")
		field(slotEpochOff, slotHashOff, "epoch %d", s.epoch)
		field(slotHashOff, slotPreviousOff, "hash %s", s.hash)
		field(slotPreviousOff, slotZeroOff, "previous hash %s", s.previous)
		field(slotZeroOff, pageCRCOff, "zero")
		field(pageCRCOff, slotLen, "crc")
		if err != nil {
			d.Note("invalid: %v", err)
		}
		d.End()
	}
	return d.Err()
}

// AnchorSlot is one slot of an ANCHOR.
type AnchorSlot struct {
	State          string // "intent", "confirmed", "damaged", or "empty" if the slot was never written
	Instance       [16]byte
	Epoch          uint64
	Hash, Previous string // of the metadata of this epoch and of the one before
	Problem        error  // of a damaged slot, as one is after a crash during its write
}

// ReadAnchor decodes the bytes of an ANCHOR of any store. Errors: ErrCorrupt if data does not have
// the length of an ANCHOR, or if no slot is valid.
func ReadAnchor(data []byte) (slots [2]AnchorSlot, err error) {
	if len(data) != 2*slotLen {
		return slots, fault.Corruptf("%s: %d bytes long, want %d", anchorName, len(data), 2*slotLen)
	}
	good := 0
	for i := range slots {
		p := data[i*slotLen:][:slotLen]
		a := AnchorSlot{Instance: [16]byte(p[pageInstanceOff:])}
		s, err := decodeSlot(p, a.Instance)
		switch {
		case allZero(p):
			a.State = "empty"
		case err != nil:
			a = AnchorSlot{State: "damaged", Problem: err}
		default:
			a.State, a.Epoch, a.Hash, a.Previous = slotStates[s.state], s.epoch, s.hash.String(), s.previous.String()
			good++
		}
		slots[i] = a
	}
	if good == 0 {
		return slots, fault.Corruptf("%s: no valid slot", anchorName)
	}
	return slots, nil
}

var slotStates = map[byte]string{slotIntent: "intent", slotConfirmed: "confirmed"}

// MetadataRow is one row of the metadata.
type MetadataRow struct {
	// Kind is block, container, dead (space that is not freed yet), format, id_mark, log_start,
	// root, or caller.
	Kind       string
	Key, Value []byte // as stored; of a caller's row the caller's key
	Fields     []MetadataField
	Problem    error // why there are no Fields
}

// MetadataField is a field of a row: a number, or text.
type MetadataField struct {
	Name  string
	Value any
}

// ReadMetadata calls fn with each row of the metadata in key order and writes nothing. A row that
// is damaged has a Problem; Key and Value are valid during the call. It compares the rows with the
// hash in the root row, but not with the anchor or the containers, as Open does.
//
// The caller holds the store's lock, shared or exclusive. An error of fn ends the reading and is
// returned as it is, like an error of the operating system. Other errors: ErrCorrupt.
func ReadMetadata(o Options, fn func(*MetadataRow) error) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if o.Follow {
		view, err := viewMeta(&o)
		if err != nil {
			return fmt.Errorf("blockmanager: metadata: %w", metaError(err))
		}
		defer view.close()
		o.FS = view
	}
	meta, err := openMeta(&o, metaRead, newPoison())
	if err != nil {
		return fmt.Errorf("blockmanager: %w", err)
	}
	var sum setHash
	var last root
	var refused error
	err = meta.scan(func(key, value []byte) error {
		row := parseRow(key, value)
		if row.Kind == "root" {
			last, _ = decodeRoot(key, value) // parseRow reports the error
		} else {
			sum.add(key, value)
		}
		refused = fn(&row)
		return refused
	})
	if refused == nil && err == nil && sum != last.hash {
		err = fault.Corruptf("metadata: hash of the rows is %s, the root of epoch %d says %s", sum, last.epoch,
			last.hash)
	}
	return errors.Join(err, meta.close())
}

// parseRow reads a row of any kind.
func parseRow(key, value []byte) MetadataRow {
	row := MetadataRow{Kind: "unknown", Key: key, Value: value}
	add := func(name string, value any) { row.Fields = append(row.Fields, MetadataField{name, value}) }
	if len(key) == 0 {
		row.Problem = badRow(key, value)
		return row
	}
	number := func(kind, name string) {
		var n uint64
		row.Kind = kind
		n, row.Problem = decodeNumber(key, value)
		add(name, n)
	}
	switch key[0] {
	case kindBlock:
		var id block.ID
		var b blockRow
		row.Kind = "block"
		id, b, row.Problem = decodeBlock(key, value)
		add("block", uint64(id))
		add("container", b.container.String())
		add("offset", b.off)
		add("bytes", b.length)
		add("sum", fmt.Sprintf("%016x", b.sum))
		add("identity", fmt.Sprintf("%016x", b.identity))
	case kindContainer:
		var id containerID
		var c containerRow
		row.Kind = "container"
		id, c, row.Problem = decodeContainer(key, value)
		add("container", id.String())
		add("state", containerStates[c.state])
		add("end", c.next)
	case kindDead:
		var id containerID
		var off, length int64
		row.Kind = "dead"
		id, off, length, row.Problem = decodeDead(key, value)
		add("container", id.String())
		add("offset", off)
		add("bytes", length)
	case kindFormat:
		var f formatRow
		row.Kind = "format"
		f, row.Problem = decodeFormat(key, value)
		add("version", formatVersion)
		add("block_size", f.blockSize)
		add("instance", fmt.Sprintf("%x", f.instance))
	case kindMark:
		number("id_mark", "below")
	case kindLogStart:
		number("log_start", "lsn")
	case kindRoot:
		var r root
		row.Kind = "root"
		r, row.Problem = decodeRoot(key, value)
		add("epoch", r.epoch)
		add("hash", r.hash.String())
	case kindUser:
		row.Kind, row.Key = "caller", key[1:]
	default:
		row.Problem = badRow(key, value)
	}
	if row.Problem != nil {
		row.Fields = nil
	}
	return row
}

var containerStates = map[byte]string{containerOpen: "open", containerFull: "full", containerDead: "dead"}

// Dump prints the row's bytes with their meaning.
func (r *MetadataRow) Dump(w io.Writer) error {
	d := dump.New(w)
	d.Section("%s %x", r.Kind, r.Key)
	defer d.End()
	meaning := ""
	for i, f := range r.Fields {
		if i > 0 {
			meaning += ", "
		}
		meaning += fmt.Sprintf("%s %v", f.Name, f.Value)
	}
	if r.Problem != nil {
		meaning = r.Problem.Error()
	}
	d.Field(0, r.Value, "%s", meaning)
	return d.Err()
}
