package wal

import "testing"

// After Roll and Release nothing is left to read, and LSNs go on where they were, also after a
// power cut.
func TestRollLetsReleaseTakeAllRecords(t *testing.T) {
	m := emptyMem(t)
	o := small(m)
	l := create(t, o)
	must(t, l.Roll()) // nothing to seal: the segment stays
	appendAll(t, l, "a", "b", "c")
	must(t, l.Roll())
	if l.Durable() != 3 {
		t.Errorf("LSN %d is durable, want 3", l.Durable())
	}
	must(t, l.Release(4))
	names, err := m.List(testDir)
	must(t, err)
	if len(names) != 1 || names[0] != segmentName(2) || l.Bytes() != headerLen {
		t.Errorf("left: %q of %d bytes", names, l.Bytes())
	}
	must(t, l.Roll()) // nor now
	must(t, l.Close())
	o.FS = m.Crash()
	l, got := open(t, o, 4)
	if len(got) != 0 || l.Next() != 4 {
		t.Errorf("records %v, next LSN %d, want none and 4", got, l.Next())
	}
	appendAll(t, l, "d")
	must(t, l.Close())
	if _, got, err = replay(o, 4); err != nil || len(got) != 1 || got[4] != "d" {
		t.Errorf("records %v, %v", got, err)
	}
}
