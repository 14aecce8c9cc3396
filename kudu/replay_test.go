package kudu

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// openWarned opens a tablet and returns its number of rows and the warnings.
func openWarned(t *testing.T, fsys vfs.FS, tablet string) (rows int, warnings string, err error) {
	t.Helper()
	d := must.Get(Open("/fs", Options{FS: fsys, Warn: func(text string) { warnings += text + "\n" }}))(t)
	defer d.Close()
	table, err := d.Open(t.Context(), tablet)
	if err != nil {
		return 0, warnings, err
	}
	defer table.Close()
	rows, err = countRows(table)
	return rows, warnings, err
}

// setVoters makes replicas of other servers voters of a tablet, too.
func setVoters(t *testing.T, fsys *vfs.Mem, tablet string, n int) {
	t.Helper()
	d := must.Get(kudufs.Open(fsys, "/fs"))(t)
	m := must.Get(d.Consensus(tablet))(t)
	for kudufs.Voters(m) < n {
		m.CommittedConfig.Peers = append(m.CommittedConfig.Peers, &kudupb.RaftPeerPB{
			PermanentUuid: []byte(strings.Repeat("0", 32)), MemberType: proto.Int32(int32(kudupb.RaftMemberType_VOTER)),
		})
	}
	overwrite(t, fsys, d.ConsensusPath(tablet), kudufs.AppendContainer(nil, "kudu.consensus.ConsensusMetadataPB", m))
}

// The last operation has no result: the only voter applies it, several may not.
func TestOperationsWithoutResults(t *testing.T) {
	c := readCase(t, "pending-commit")
	fsys, tablet := c.unpack(t), c.Tablets[0].ID
	if rows, warnings, err := openWarned(t, fsys, tablet); rows != 350 || warnings != "" || err != nil {
		t.Errorf("one voter: %d rows, warnings %q, %v", rows, warnings, err)
	}
	setVoters(t, fsys, tablet, 3)
	if rows, warnings, err := openWarned(t, fsys, tablet); rows != 342 ||
		!strings.Contains(warnings, "left out: the majority of 3 voters") || err != nil {
		t.Errorf("three voters: %d rows, warnings %q, %v", rows, warnings, err)
	}
	overwrite(t, fsys, filepath.Join("/fs/ts/consensus-meta", tablet), nil)
	if rows, warnings, err := openWarned(t, fsys, tablet); rows != 342 ||
		!strings.Contains(warnings, "voters are not known") || err != nil {
		t.Errorf("no consensus metadata: %d rows, warnings %q, %v", rows, warnings, err)
	}
}

// Operations decided again have the results that the server recorded, those that failed included.
func TestOperationsAreDecidedAsTheServerDid(t *testing.T) {
	c := readCase(t, "wal-only")
	fsys := c.unpack(t)
	dir := "/fs/ts/wals/b1b8dc55f53443a3aa0f579cbef2a8d9"
	for _, name := range []string{"wal-000000001", "wal-000000002"} {
		path := filepath.Join(dir, name)
		header, payload := logEntries(t, fsys, path)
		var kept []byte
		for len(payload) > 0 {
			_, _, n := protowire.ConsumeField(payload)
			var e kudupb.LogEntryBatchPB
			must.Do(t, proto.Unmarshal(payload[:n], &e))
			if e.Entry[0].Commit == nil {
				kept = append(kept, payload[:n]...)
			}
			payload = payload[n:]
		}
		overwrite(t, fsys, path, logSegment(header, kept))
	}
	d := must.Get(Open("/fs", Options{FS: fsys}))(t)
	c.compareWith(t, d)
}

// Logs of a tablet that has no rowsets, entry by entry.
func TestLogsThatAreRefused(t *testing.T) {
	c := readCase(t, "wal-only")
	base := c.unpack(t)
	const tablet = "51680889245343d0998e6fe0ee0bfe1a"
	path := filepath.Join("/fs/ts/wals", tablet, "wal-000000001")
	header, _ := logEntries(t, base, path)
	for _, test := range []struct {
		name   string
		index  int64
		kind   kudupb.OperationType
		change func(m *kudupb.ReplicateMsg)
		err    error
		text   string // of the error or the warning
	}{
		{"no-op", 1, kudupb.OperationType_NO_OP, nil, nil, ""},
		{"change of the replicas", 1, kudupb.OperationType_CHANGE_CONFIG_OP, nil, nil, ""},
		{"entries before the first one are missing", 5, kudupb.OperationType_NO_OP, nil, nil,
			"begins with operation 5"},
		{"transaction", 1, kudupb.OperationType_PARTICIPANT_OP, nil, ErrUnsupported, "PARTICIPANT_OP"},
		{"unknown operation", 1, 77, nil, ErrUnsupported, "type 77"},
		{"write without a request", 1, kudupb.OperationType_WRITE_OP, nil, ErrCorrupt, "no request"},
		{"alteration without a request", 1, kudupb.OperationType_ALTER_SCHEMA_OP, nil, ErrCorrupt, "no request"},
		{"impossible time", 1, kudupb.OperationType_NO_OP, func(m *kudupb.ReplicateMsg) {
			m.Timestamp = proto.Uint64(1<<64 - 1)
		}, ErrCorrupt, "timestamp"},
		{"write of a transaction", 1, kudupb.OperationType_WRITE_OP, func(m *kudupb.ReplicateMsg) {
			m.WriteRequest = &kudupb.WriteRequestPB{TabletId: []byte(tablet), TxnId: proto.Int64(4)}
		}, ErrUnsupported, "transaction 4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &kudupb.ReplicateMsg{Id: &kudupb.OpId{Term: proto.Int64(1), Index: &test.index},
				Timestamp: proto.Uint64(9), OpType: proto.Int32(int32(test.kind))}
			if test.change != nil {
				test.change(m)
			}
			payload := must.Get(proto.Marshal(&kudupb.LogEntryBatchPB{Entry: []*kudupb.LogEntryPB{
				{Type: proto.Int32(int32(kudupb.LogEntryTypePB_REPLICATE)), Replicate: m},
				{Type: proto.Int32(int32(kudupb.LogEntryTypePB_COMMIT)),
					Commit: &kudupb.CommitMsg{OpType: m.OpType, CommitedOpId: m.Id}},
			}}))(t)
			fsys := base.Clone()
			overwrite(t, fsys, path, logSegment(header, payload))
			_, warnings, err := openWarned(t, fsys, tablet)
			must.Fail(t, err, test.err)
			if err != nil {
				warnings += err.Error()
			}
			if !strings.Contains(warnings, test.text) || test.text == "" && warnings != "" {
				t.Errorf("got %q, want %q", warnings, test.text)
			}
		})
	}
}

// Which stores of a result are not in files. Source: tablet spec §18.5.
func TestActiveStores(t *testing.T) {
	c := readCase(t, "unflushed-deltas")
	d := c.open(t)
	table := openTable(t, d, c.Tablets[0].ID)
	p := must.Get(newPlayer(t.Context(), table.tablets[0]))(t)
	set := p.t.sets[0].Metadata()
	mrs := func(n int64) *kudupb.MemStoreTargetPB {
		return &kudupb.MemStoreTargetPB{MrsId: proto.Int64(p.t.super.GetLastDurableMrsId() + n)}
	}
	dms := func(rowset uint64, n int64) *kudupb.MemStoreTargetPB {
		return &kudupb.MemStoreTargetPB{RsId: proto.Int64(int64(rowset)), DmsId: proto.Int64(set.LastDurableDMS + n)}
	}
	failed := &kudupb.OperationResultPB{FailedStatus: &kudupb.AppStatusPB{Code: proto.Int32(6)},
		MutatedStores: []*kudupb.MemStoreTargetPB{mrs(1)}}
	skipped := &kudupb.OperationResultPB{SkipOnReplay: proto.Bool(true),
		MutatedStores: []*kudupb.MemStoreTargetPB{mrs(1)}}
	stores := func(s ...*kudupb.MemStoreTargetPB) *kudupb.OperationResultPB {
		return &kudupb.OperationResultPB{MutatedStores: s}
	}
	for _, test := range []struct {
		name   string
		result *kudupb.OperationResultPB
		want   string
		err    error
	}{
		{"no store", stores(), "none", nil},
		{"failed", failed, "none", nil},
		{"skipped", skipped, "none", nil},
		{"flushed MemRowSet", stores(mrs(0)), "none", nil},
		{"MemRowSet", stores(mrs(1)), "rows", nil},
		{"later MemRowSet", stores(mrs(2)), "rows", nil},
		{"flushed deltas", stores(dms(set.ID, 0)), "none", nil},
		{"deltas", stores(dms(set.ID, 1)), "deltas", nil},
		{"deltas of a rowset that is gone", stores(dms(1e6, 1)), "none", nil},
		{"flushed input, output", stores(mrs(0), dms(set.ID, 1)), "deltas", nil},
		{"input, output that was not finished", stores(mrs(1), dms(1e6, 0)), "rows", nil},
		{"both", stores(mrs(1), dms(set.ID, 1)), "", ErrCorrupt},
		{"three", stores(mrs(0), mrs(0), mrs(1)), "", ErrCorrupt},
		{"transaction", stores(&kudupb.MemStoreTargetPB{RsTxnId: proto.Int64(1)}), "", ErrUnsupported},
	} {
		to, err := p.active(test.result)
		got := "none"
		if err != nil {
			got = ""
		} else if to != nil && to.set == nil {
			got = "rows"
		} else if to != nil {
			got = "deltas"
		}
		must.Equal(t, got, test.want, test.name)
		must.Fail(t, err, test.err, test.name)
	}
	must.Equal(t, len(p.missingStores("log")), 0)
	p.firstMRS++
	p.firstDMS[p.t.sets[0]]++
	must.Equal(t, len(p.missingStores("log")), 2)
}

// appendToLog appends an operation to the last segment of a tablet's log, with its result unless
// that is nil. change gets the operation, which has the next index and the timestamp of the last
// one.
func appendToLog(
	t *testing.T, fsys *vfs.Mem, tablet string, kind kudupb.OperationType, result *kudupb.CommitMsg,
	change func(m *kudupb.ReplicateMsg),
) {
	t.Helper()
	segments := must.Get(kuduwal.Segments(fsys, filepath.Join("/fs/ts/wals", tablet)))(t)
	var header, payload []byte
	m := &kudupb.ReplicateMsg{OpType: proto.Int32(int32(kind))}
	for _, s := range segments {
		header, payload = logEntries(t, fsys, s.Path)
		var entries kudupb.LogEntryBatchPB
		must.Do(t, proto.Unmarshal(payload, &entries))
		for _, e := range entries.Entry {
			if r := e.Replicate; r != nil {
				m.Id = &kudupb.OpId{Term: r.Id.Term, Index: proto.Int64(r.Id.GetIndex() + 1)}
				m.Timestamp = proto.Uint64(max(m.GetTimestamp(), r.GetTimestamp()))
			}
		}
	}
	change(m)
	more := []*kudupb.LogEntryPB{{Type: proto.Int32(int32(kudupb.LogEntryTypePB_REPLICATE)), Replicate: m}}
	if result != nil {
		result.OpType, result.CommitedOpId = m.OpType, m.Id
		more = append(more, &kudupb.LogEntryPB{Type: proto.Int32(int32(kudupb.LogEntryTypePB_COMMIT)), Commit: result})
	}
	b := must.Get(proto.Marshal(&kudupb.LogEntryBatchPB{Entry: more}))(t)
	overwrite(t, fsys, segments[len(segments)-1].Path, logSegment(header, append(payload, b...)))
}

// Operations that change neither rows nor the schema may have earlier timestamps than those before
// them, writes may not.
func TestTimestampsOfTheLog(t *testing.T) {
	c := readCase(t, "unflushed-deltas")
	base, tablet := c.unpack(t), c.Tablets[0].ID
	want, _ := must.Get2(openWarned(t, base, tablet))(t)
	for kind, wantErr := range map[kudupb.OperationType]error{
		kudupb.OperationType_NO_OP: nil, kudupb.OperationType_CHANGE_CONFIG_OP: nil,
		kudupb.OperationType_WRITE_OP: ErrCorrupt, kudupb.OperationType_ALTER_SCHEMA_OP: ErrCorrupt,
	} {
		fsys := base.Clone()
		appendToLog(t, fsys, tablet, kind, new(kudupb.CommitMsg), func(m *kudupb.ReplicateMsg) { *m.Timestamp-- })
		rows, warnings, err := openWarned(t, fsys, tablet)
		if !errors.Is(err, wantErr) || err == nil && (rows != want || warnings != "") ||
			err != nil && !strings.Contains(err.Error(), "after one at") {
			t.Errorf("%v: %d rows, want %d; warnings %q; %v", kind, rows, want, warnings, err)
		}
	}
}

// superblockOf returns the superblock of a tablet.
func superblockOf(t *testing.T, fsys vfs.FS, tablet string) *kudupb.TabletSuperBlockPB {
	t.Helper()
	d := must.Get(kudufs.Open(fsys, "/fs"))(t)
	return must.Get(d.Superblock(tablet))(t)
}

// An alteration that the server refused has no effect, whatever its schema is.
func TestAlterationsThatFailed(t *testing.T) {
	c := readCase(t, "unflushed-deltas")
	fsys, tablet := c.unpack(t), c.Tablets[0].ID
	want, _ := must.Get2(openWarned(t, fsys, tablet))(t)
	super := superblockOf(t, fsys, tablet)
	super.Schema.Columns[0].Type = proto.Int32(int32(kudupb.DataType_BOOL)) // of the key
	message := must.Get(proto.Marshal(super.Schema))(t)
	result := must.Get(
		proto.Marshal(&kudupb.OperationResultPB{FailedStatus: &kudupb.AppStatusPB{Code: proto.Int32(4)}}))(t)
	commit := &kudupb.CommitMsg{Result: protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), result)}
	appendToLog(t, fsys, tablet, kudupb.OperationType_ALTER_SCHEMA_OP, commit, func(m *kudupb.ReplicateMsg) {
		m.AlterSchemaRequest = &kudupb.AlterSchemaRequestPB{TabletId: []byte(tablet), Schema: message,
			SchemaVersion: proto.Uint32(super.GetSchemaVersion() + 1)}
	})
	if rows, warnings, err := openWarned(t, fsys, tablet); rows != want || warnings != "" || err != nil {
		t.Errorf("%d rows, want %d; warnings %q; %v", rows, want, warnings, err)
	}
}

// An alteration after the superblock's version may drop a column that needs a value.
func TestAlterationsThatTheSuperblockLacks(t *testing.T) {
	c := readCase(t, "lineitem")
	fsys, tablet := c.unpack(t), c.Tablets[0].ID
	want, _ := must.Get2(openWarned(t, fsys, tablet))(t)
	super := superblockOf(t, fsys, tablet)
	columns := super.Schema.Columns
	if last := columns[len(columns)-1]; last.GetIsKey() || last.GetIsNullable() || last.ReadDefaultValue != nil {
		t.Fatalf("the last column is %v", last)
	}
	super.Schema.Columns = columns[:len(columns)-1]
	message := must.Get(proto.Marshal(super.Schema))(t)
	appendToLog(t, fsys, tablet, kudupb.OperationType_ALTER_SCHEMA_OP, nil, func(m *kudupb.ReplicateMsg) {
		m.AlterSchemaRequest = &kudupb.AlterSchemaRequestPB{TabletId: []byte(tablet), Schema: message,
			SchemaVersion: proto.Uint32(super.GetSchemaVersion() + 1)}
	})
	if rows, warnings, err := openWarned(t, fsys, tablet); rows != want ||
		!strings.Contains(warnings, "which is read") || err != nil {
		t.Errorf("%d rows, want %d; warnings %q; %v", rows, want, warnings, err)
	}
}

// What only the logs have is within a limit, and a table that is closed gives its memory back.
func TestMemoryOfLogsIsBounded(t *testing.T) {
	for _, name := range []string{"wal-only", "unflushed-deltas"} {
		c := readCase(t, name)
		fsys := c.unpack(t)
		d := must.Get(Open("/fs", Options{FS: fsys}))(t)
		some := false
		for _, tablet := range c.Tablets {
			table := must.Get(d.Open(t.Context(), tablet.ID))(t)
			most := d.memory.Used()
			table.Close()
			must.Equal(t, d.memory.Used(), 0, name, most)
			if most > 0 {
				some = true
				testLogLimit(t, fsys, tablet.ID, most)
			}
		}
		must.Equal(t, some, true, name)
	}
}

// testLogLimit opens a tablet whose log needs most bytes, with that limit and a lower one.
func testLogLimit(t *testing.T, fsys vfs.FS, tablet string, most int64) {
	t.Helper()
	for _, limit := range []int64{most - 1, most} {
		d := must.Get(Open("/fs", Options{FS: fsys, LogBytes: limit}))(t)
		for range 2 { // one at a time
			table, err := d.Open(t.Context(), tablet)
			if (limit < most) != errors.Is(err, ErrLogMemory) || limit >= most && err != nil {
				t.Errorf("tablet %s with %d bytes, it needs %d: %v", tablet, limit, most, err)
			}
			if err == nil {
				table.Close()
			}
			must.Equal(t, d.memory.Used(), 0, tablet)
		}
	}
}
