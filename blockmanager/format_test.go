package blockmanager

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/internal/must"
)

func fill16(b byte) (a [16]byte) {
	for i := range a {
		a[i] = b
	}
	return a
}

// unhex decodes hex with spaces, and "n*xx" for n times byte xx.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	s = strings.ReplaceAll(s, "4040*00", strings.Repeat("00", 4040))
	s = strings.ReplaceAll(s, "4016*00", strings.Repeat("00", 4016))
	return must.Get(hex.DecodeString(strings.Join(strings.Fields(s), "")))(t)
}

// The examples are copied from the byte tables, which change only with the format.
func TestFormatsAreThoseOfTheTables(t *testing.T) {
	instance, in := fill16(1), containerID(fill16(10))
	b := blockRow{container: in, off: 8192, length: 5, sum: xxh3.Hash([]byte("oribi"))}
	b.identity = identity(instance, 7, &b, []byte("oribi"))
	intent := slot{state: slotIntent, root: root{epoch: 2, hash: setHash{7, 8}}, previous: setHash{5, 6}}
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"mark":       {append([]byte{kindMark}, numberValue(1025)...), "69 01 04 00 00 00 00 00 00"},
		"dead key":   {deadKey(in, 8192), "64 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a 00 00 00 00 00 00 20 00"},
		"dead value": {numberValue(100), "64 00 00 00 00 00 00 00"},
		"block key":  {blockKey(7), "62 00 00 00 00 00 00 00 07"},
		"block": {b.value(), `0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a 0020000000000000 0500000000000000
			92a3ce29f2e5b444 4bd99af2aa8bf1d7`},
		"container": {containerRow{containerFull, 1 << 30}.value(), "02 00 00 00 00 00 00 00 00 00 00 40 00 00 00 00"},
		"format": {formatRow{4096, instance}.value(),
			"0100 0000 00000000 00000000 00100000 01010101010101010101010101010101"},
		"root": {root{epoch: 2}.value(), "0200000000000000 00000000000000000000000000000000 3d1eb085abc4290b"},
		"header": {encodeHeader(instance, in), `6f72696269636e74 0100 0000 00000000 00000000
			01010101010101010101010101010101 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a 4040*00 80d1b61a`},
		"slot": {intent.encode(instance), `6f72696269616e63 0100 01 00 00000000 00000000
			01010101010101010101010101010101 0200000000000000 07000000000000000800000000000000
			05000000000000000600000000000000 4016*00 5c00aec1`},
	} {
		must.Equal(t, c.got, unhex(t, c.want), name)
	}
}

func TestDecodersInvertEncoders(t *testing.T) {
	instance, in := fill16(1), containerID(fill16(10))
	b := blockRow{container: in, off: 8192, length: 5, sum: 3, identity: 4}
	if id, got, err := decodeBlock(blockKey(7), b.value()); err != nil || id != 7 || got != b {
		t.Errorf("block: %v %+v %v", id, got, err)
	}
	c := containerRow{containerFull, 1 << 30}
	if id, got, err := decodeContainer(containerKey(in), c.value()); err != nil || id != in || got != c {
		t.Errorf("container: %v %+v %v", id, got, err)
	}
	if id, off, n, err := decodeDead(deadKey(in, 4096), numberValue(9)); err != nil || id != in ||
		off != 4096 || n != 9 {
		t.Errorf("dead: %v %d %d %v", id, off, n, err)
	}
	f := formatRow{4096, instance}
	must.Equal(t, must.Get(decodeFormat([]byte{kindFormat}, f.value()))(t), f, "format")
	r := root{5, setHash{6, 7}}
	must.Equal(t, must.Get(decodeRoot([]byte{kindRoot}, r.value()))(t), r, "root")
	s := slot{state: slotConfirmed, root: r, previous: setHash{8, 9}}
	must.Equal(t, must.Get(decodeSlot(s.encode(instance), instance))(t), s, "slot")
	must.Do(t, checkHeader(encodeHeader(instance, in), instance, in), "header")
}

// For any bytes a decoder returns without a panic, and every flip of a checksummed page is
// detected.
func TestDecodersRefuseDamage(t *testing.T) {
	instance, in := fill16(1), containerID(fill16(10))
	page := encodeHeader(instance, in)
	s := slot{state: slotIntent, root: root{2, setHash{7, 8}}}
	anchorPage := s.encode(instance)
	for i := range page {
		page[i] ^= 0x10
		must.Refuse(t, checkHeader(page, instance, in), "header: byte", i, "flipped is not seen")
		page[i] ^= 0x10
		anchorPage[i] ^= 0x10
		must.Refuse(t, must.Err(decodeSlot(anchorPage, instance)), "slot: byte", i, "flipped is not seen")
		anchorPage[i] ^= 0x10
	}
	must.Refuse(t, checkHeader(page, fill16(2), in), "header of another store or container")
	must.Refuse(t, checkHeader(page, instance, containerID{}), "header of another store or container")
	must.Refuse(t, must.Err(decodeSlot(anchorPage, fill16(2))), "slot: of another store is taken")
	for n := range 64 {
		key, v := make([]byte, n), make([]byte, n)
		for _, k := range []int{1, n} {
			key := key[:min(k, n)]
			decodeBlock(key, v)
			decodeContainer(key, v)
			decodeDead(key, v)
			decodeNumber(key, v)
			decodeFormat(key, v)
			decodeRoot(key, v)
		}
	}
}

// The order of rows does not matter, the length of a key does, and removing a row undoes adding it.
func TestSetHashIgnoresOrder(t *testing.T) {
	var a, b setHash
	a.add([]byte("k"), []byte("v"))
	a.add([]byte("l"), []byte("w"))
	b.add([]byte("l"), []byte("w"))
	b.add([]byte("k"), []byte("v"))
	must.Equal(t, a, b, "the order counts")
	b.add([]byte("x"), nil)
	b.sub([]byte("x"), nil)
	must.Equal(t, a, b, "sub does not undo add")
	b.sub([]byte("k"), []byte("v"))
	b.add([]byte("kv"), nil)
	if a == b {
		t.Error("(k, v) and (kv, ) are the same")
	}
}

func TestNewestSlotHasHighestEpochThenIsConfirmed(t *testing.T) {
	mk := func(state byte, epoch uint64) slot { return slot{state: state, root: root{epoch: epoch}} }
	for _, c := range []struct {
		a, b slot
		want int
	}{
		{slot{}, slot{}, -1},
		{mk(slotIntent, 1), slot{}, 0},
		{slot{}, mk(slotIntent, 1), 1},
		{mk(slotConfirmed, 1), mk(slotIntent, 2), 1},
		{mk(slotIntent, 2), mk(slotConfirmed, 1), 0},
		{mk(slotIntent, 2), mk(slotConfirmed, 2), 1},
		{mk(slotConfirmed, 2), mk(slotIntent, 2), 0},
	} {
		must.Equal(t, newestSlot(&[2]slot{c.a, c.b}), c.want, c)
	}
}
