package wal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// walkText walks the log and returns a line an entry.
func walkText(t *testing.T, o Options) string {
	t.Helper()
	var out strings.Builder
	must.Do(t, Walk(o, func(e *Entry) error {
		kind := map[EntryKind]string{EntrySegment: "segment", EntryRecord: "record", EntryFooter: "footer",
			EntryTail: "tail", EntryDamage: "damage"}[e.Kind]
		fmt.Fprintf(&out, "%s %s", strings.TrimLeft(e.File[:numberDigits], "0"), kind)
		if e.Kind == EntryTail || e.Kind == EntryDamage {
			fmt.Fprintf(&out, " %d bytes at %d", e.Bytes, e.Offset)
		} else {
			fmt.Fprintf(&out, " LSN %d frames %d %q", e.LSN, e.Frames, e.Payload)
		}
		out.WriteByte('\n')
		return nil
	}))
	return out.String()
}

func TestWalkFindsEveryRecordNextToDamage(t *testing.T) {
	o := small(emptyMem(t))
	l := create(t, o)
	long := "a record that is a little longer than one frame may be: 64 bytes!"
	appendAll(t, l, "hello")
	must.Do(t, l.Sync(1))
	appendAll(t, l, "", long)
	appendToNext(t, l, "next segment")
	must.Do(t, l.Close())
	sealed, newest := readFile(t, o.FS, segmentPath(1)), readFile(t, o.FS, segmentPath(2))
	const first, second = headerLen, headerLen + frameLen + 8
	whole := fmt.Sprintf("1 segment LSN 1 frames 0 \"\"\n1 record LSN 1 frames 1 \"hello\"\n1 record LSN "+
		"2 frames 1 \"\"\n"+
		"1 record LSN 3 frames 2 %q\n1 footer LSN 3 frames 4 \"\"\n", long)
	last := "2 segment LSN 4 frames 0 \"\"\n2 record LSN 4 frames 1 \"next segment\"\n2 footer LSN 4 frames 1 \"\"\n"

	edit := func(data []byte, edit func(b []byte)) []byte {
		data = bytes.Clone(data)
		edit(data)
		return data
	}
	for name, test := range map[string]struct {
		sealed, newest []byte
		want           string
	}{
		"nothing": {sealed, newest, whole + last},
		"first record": {edit(sealed, func(b []byte) { copy(b[first+frameLen:], "HELLO") }), newest,
			strings.Replace(whole, "record LSN 1 frames 1 \"hello\"",
				fmt.Sprintf("damage %d bytes at %d", second-first, first), 1) + last},
		"flipped bit": {edit(sealed, func(b []byte) { b[first+frameLen] ^= 1 }), newest,
			strings.Replace(whole, "1 record LSN 1",
				fmt.Sprintf("1 damage 0 bytes at %d\n1 record LSN 1", first+frameLen), 1) + last},
		"header": {edit(sealed, func(b []byte) { copy(b, "notmagic") }), newest,
			fmt.Sprintf("1 damage %d bytes at 0\n", len(sealed)) + last},
		"torn end": {sealed, newest[:len(newest)-footerLen-8],
			whole + fmt.Sprintf("2 segment LSN 4 frames 0 \"\"\n2 tail %d bytes at %d\n",
				len(newest)-footerLen-8-headerLen, headerLen)},
		"zeros": {sealed, append(bytes.Clone(newest[:len(newest)-footerLen]), make([]byte, 4096)...),
			whole + strings.Replace(last, "footer LSN 4 frames 1 \"\"",
				fmt.Sprintf("tail 4096 bytes at %d", len(newest)-footerLen), 1)},
		"unfinished header": {sealed, newest[:30], whole + "2 tail 30 bytes at 0\n"},
		"missing footer": {sealed[:len(sealed)-footerLen], newest,
			strings.Replace(whole, "footer LSN 3 frames 4 \"\"",
				fmt.Sprintf("damage 0 bytes at %d", len(sealed)-footerLen), 1) + last},
	} {
		t.Run(name, func(t *testing.T) {
			o := small(emptyMem(t))
			writeFile(t, o.FS, segmentPath(1), test.sealed)
			writeFile(t, o.FS, segmentPath(2), test.newest)
			must.Equal(t, walkText(t, o), test.want)
		})
	}
}

func TestWalkReturnsTheErrorOfItsFunction(t *testing.T) {
	o := small(emptyMem(t))
	l := create(t, o)
	appendAll(t, l, "hello")
	must.Do(t, l.Close())
	stop, calls := errors.New("stop"), 0
	must.Fail(t, Walk(o, func(*Entry) error { calls++; return stop }), stop)
	must.Equal(t, calls, 1, "calls")
}
