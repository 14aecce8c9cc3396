package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recovery is the part of "store info" about the replay.
type recovery struct {
	Clean        bool  `json:"clean"`
	Frames       int64 `json:"frames"`
	TornBytes    int64 `json:"torn_bytes"`
	RepairedBits int64 `json:"repaired_bits"`
}

func recoveryOf(t *testing.T, dir string) recovery {
	t.Helper()
	var info struct{ Recovery recovery }
	if err := json.Unmarshal([]byte(must(t, nil, "store", "info", dir)), &info); err != nil {
		t.Fatal(err)
	}
	return info.Recovery
}

// killed applies batches [from, to) in a process that it kills after the last acknowledgement.
func killed(t *testing.T, dir string, from, to int) {
	t.Helper()
	a := startApply(t, dir)
	for n := from; n < to; n++ {
		if _, err := a.in.Write([]byte(line(n))); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.acknowledged(t, to-from); len(got) != to-from {
		t.Fatal(a.errs.String())
	}
	if err := a.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	a.Wait()
}

// editLog changes the newest segment of the log.
func editLog(t *testing.T, dir string, edit func(b []byte) []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no log: %v", err)
	}
	name := names[len(names)-1]
	b, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, edit(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// "store info" reports what a replay found until a writer has repaired it: an unclean end, a
// flipped bit, a torn end, of which the writer keeps a copy.
func TestInfoReportsReplayResult(t *testing.T) {
	t.Parallel()
	dir := numbers(t)
	if got := recoveryOf(t, dir); got != (recovery{Clean: true}) {
		t.Errorf("a new store: %+v", got)
	}
	killed(t, dir, 0, 5)
	if got := recoveryOf(t, dir); got != (recovery{Frames: 5}) {
		t.Errorf("after a kill: %+v", got)
	}
	editLog(t, dir, func(b []byte) []byte {
		b[bytes.Index(b, []byte("odd"))] ^= 4
		return b
	})
	for range 2 {
		if got := recoveryOf(t, dir); got != (recovery{Frames: 5, RepairedBits: 1}) {
			t.Errorf("with a flipped bit: %+v", got)
		}
	}
	if out, _, code := run(t, nil, "store", "verify", dir); code != 3 || !strings.Contains(out, "bit 2 is flipped") {
		t.Errorf("verify: exit code %d: %s", code, out)
	}
	killed(t, dir, 5, 8)
	if got := recoveryOf(t, dir); got != (recovery{Frames: 8}) {
		t.Errorf("after a writer that was killed: %+v", got)
	}
	editLog(t, dir, func(b []byte) []byte { return b[:bytes.LastIndex(b, []byte("odd"))+1] })
	found := recoveryOf(t, dir)
	if found.TornBytes == 0 || found != (recovery{Frames: 7, TornBytes: found.TornBytes}) {
		t.Errorf("with a torn end: %+v", found)
	}
	must(t, nil, "table", "flush", dir, "t")
	if got := recoveryOf(t, dir); !got.Clean || got.TornBytes != 0 {
		t.Errorf("after a writer: %+v", got)
	}
	torn, err := filepath.Glob(filepath.Join(dir, "wal", "*.torn"))
	if err != nil || len(torn) != 1 {
		t.Fatalf("kept: %v, %v", torn, err)
	}
	if kept, err := os.Stat(torn[0]); err != nil || kept.Size() != found.TornBytes {
		t.Errorf("%d bytes are kept, %d were torn: %v", kept.Size(), found.TornBytes, err)
	}
	if got := must(t, nil, "table", "count", dir, "t"); got != "14\n" {
		t.Errorf("%s rows, want 14", got)
	}
	if got := must(t, nil, "store", "verify", dir); got != "ok\n" {
		t.Errorf("verify: %s", got)
	}
}
