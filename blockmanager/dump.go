package blockmanager

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/oribi-db/oribi/internal/dump"
	"github.com/oribi-db/oribi/internal/fault"
)

// DumpAnchor prints the bytes of an ANCHOR with their meaning, damaged or not. Errors: ErrCorrupt
// if data has not the length of one.
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
		s, err := decodeSlot(p, [16]byte(p[slotInstanceOff:]))
		d.Section("slot %d", i)
		field(0, slotVersionOff, "magic")
		field(slotVersionOff, slotStateOff, "version %d", binary.LittleEndian.Uint16(p[slotVersionOff:]))
		field(slotStateOff, slotStateOff+1, "state: %s", map[byte]string{slotIntent: "intent", slotConfirmed: "confirmed"}[p[slotStateOff]])
		field(slotStateOff+1, slotMustOff, "zero")
		field(slotMustOff, slotMayOff, "flags a reader must know")
		field(slotMayOff, slotInstanceOff, "flags a reader may ignore")
		field(slotInstanceOff, slotEpochOff, "instance")
		field(slotEpochOff, slotHashOff, "epoch %d", s.epoch)
		field(slotHashOff, slotPreviousOff, "hash %s", s.hash)
		field(slotPreviousOff, slotZeroOff, "previous hash %s", s.previous)
		field(slotZeroOff, slotCRCOff, "zero")
		field(slotCRCOff, slotLen, "crc")
		if err != nil {
			d.Note("not good: %v", err)
		}
		d.End()
	}
	return d.Err()
}

// DumpContainer prints the header page at the start of a container's bytes.
// Errors: ErrCorrupt if data is shorter than one.
func DumpContainer(w io.Writer, data []byte) error {
	if len(data) < headerLen {
		return fault.Corruptf("container: %d bytes, a header page has %d", len(data), headerLen)
	}
	p := data[:headerLen]
	d := dump.New(w)
	field := func(from, to int, format string, args ...any) { d.Field(int64(from), p[from:to], format, args...) }
	d.Section("header page")
	field(0, headerVersionOff, "magic")
	field(headerVersionOff, headerVersionOff+2, "version %d", binary.LittleEndian.Uint16(p[headerVersionOff:]))
	field(headerVersionOff+2, headerMustOff, "zero")
	field(headerMustOff, headerMayOff, "flags a reader must know")
	field(headerMayOff, headerInstanceOff, "flags a reader may ignore")
	field(headerInstanceOff, headerContainerOff, "instance")
	field(headerContainerOff, headerZeroOff, "container")
	field(headerZeroOff, headerCRCOff, "zero")
	field(headerCRCOff, headerLen, "crc")
	if err := checkHeader(p, [16]byte(p[headerInstanceOff:]), containerID(p[headerContainerOff:headerZeroOff])); err != nil {
		d.Note("not good: %v", err)
	}
	d.End()
	return d.Err()
}

// DumpMetadata prints the rows of the last commit with their meaning, in key order. It prints the
// keys and values of the caller's rows as they are.
func (m *Manager) DumpMetadata(w io.Writer) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	st, d := m.state, dump.New(w)
	row := func(key []byte, format string, args ...any) {
		d.Section("row %x", key)
		d.Field(0, st.value(key), format, args...)
		d.End()
	}
	for _, id := range slices.Sorted(maps.Keys(st.blocks)) {
		b := st.blocks[id]
		row(blockKey(id), "block %d: %d bytes at %d of container %s", id, b.length, b.off, b.container)
	}
	for _, key := range sortedKeys(st.containers, containerKey) {
		c := st.containers[containerID(key[1:])]
		row(key, "container %s: state %d, ends at %d", c.id, c.row.state, c.row.next)
	}
	for _, key := range slices.Sorted(maps.Keys(st.dead)) {
		row([]byte(key), "dead: %s", st.dead[key])
	}
	row([]byte{kindFormat}, "format %d, block size %d", formatVersion, st.format.blockSize)
	row([]byte{kindMark}, "ids below %d may be in use", st.mark)
	row([]byte{kindLogStart}, "log_start %d", st.logStart)
	d.Section("row %x", kindRoot)
	d.Field(0, st.root.value(), "epoch %d, hash %s", st.epoch, st.hash)
	d.End()
	for _, r := range st.caller.withPrefix("") {
		row(userKey([]byte(r.key)), "caller's row %s", fmt.Sprintf("%q", clip([]byte(r.key))))
	}
	return d.Err()
}

func sortedKeys[K comparable, V any](rows map[K]V, key func(K) []byte) [][]byte {
	var keys [][]byte
	for k := range rows {
		keys = append(keys, key(k))
	}
	slices.SortFunc(keys, slices.Compare[[]byte])
	return keys
}
