package kudupb

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/must"
)

func block(id uint64) *BlockIdPB { return &BlockIdPB{Id: proto.Uint64(id)} }

// The worked messages of the specs encode to the given bytes and decode from them.
func TestMessagesAreKudusBytes(t *testing.T) {
	for _, c := range []struct {
		name, wire string
		message    proto.Message
	}{
		{"footer", "08 05 10 06 18 03 22 06 0a 04 08 39 10 17 30 01 40 00 50 01", &CFileFooterPB{
			DataType:  proto.Int32(int32(DataType_INT32)),
			Encoding:  proto.Int32(int32(EncodingType_BIT_SHUFFLE)),
			NumValues: proto.Int64(3),
			PosidxInfo: &BTreeInfoPB{RootBlock: &BlockPointerPB{Offset: proto.Int64(57),
				Size: proto.Int32(23)}},
			Compression:          proto.Int32(int32(CompressionType_NO_COMPRESSION)),
			IsTypeNullable:       proto.Bool(false),
			IncompatibleFeatures: proto.Uint32(1),
		}},
		{"header", "1a 0a 0a 04 68 6b 65 79 12 02 68 76", &CFileHeaderPB{
			Metadata: []*FileMetadataPairPB{{Key: proto.String("hkey"), Value: []byte("hv")}},
		}},
		{"index trailer", "08 02 10 01", &IndexBlockTrailerPB{
			NumEntries: proto.Int32(2), Type: proto.Int32(int32(IndexBlockTrailerPB_INTERNAL)),
		}},
		{"bloom header", "08 03", &BloomBlockHeaderPB{NumHashFunctions: proto.Int32(3)}},
		{"delta statistics", "08 01 19 07 00 00 00 00 00 00 00 21 09 00 00 00 00 00 00 00 2a 04 08 0b 10 03 30 00",
			&DeltaStatsPB{
				DeleteCount:   proto.Int64(1),
				MinTimestamp:  proto.Uint64(7),
				MaxTimestamp:  proto.Uint64(9),
				ColumnStats:   []*DeltaStatsPB_ColumnStats{{ColId: proto.Int32(11), UpdateCount: proto.Int64(3)}},
				ReinsertCount: proto.Int64(0),
			}},
		{"rowset", `08 00 10 ff ff ff ff ff ff ff ff ff 01 1a 0d 12 09 09 01 00 00 00 00 00 00 00 20 0a
			1a 0d 12 09 09 02 00 00 00 00 00 00 00 20 0b 2a 0b 12 09 09 04 00 00 00 00 00 00 00
			32 09 09 03 00 00 00 00 00 00 00 50 02`, &RowSetDataPB{
			Id:               proto.Uint64(0),
			LastDurableDmsId: proto.Int64(-1),
			Columns: []*ColumnDataPB{
				{Block: block(1), ColumnId: proto.Int32(10)},
				{Block: block(2), ColumnId: proto.Int32(11)},
			},
			UndoDeltas:   []*DeltaDataPB{{Block: block(4)}},
			BloomBlock:   block(3),
			LiveRowCount: proto.Int64(2),
		}},
		{"create record", "0a 09 09 01 00 00 00 00 00 00 00 10 01 18 80 80 f9 c0 c1 c4 82 03 20 00 28 80 20",
			&BlockRecordPB{
				BlockId:     block(1),
				OpType:      proto.Int32(int32(BlockRecordType_CREATE)),
				TimestampUs: proto.Uint64(1700000000000000),
				Offset:      proto.Int64(0),
				Length:      proto.Int64(4096),
			}},
	} {
		want := must.Hex(t, c.wire)
		if got, err := proto.Marshal(c.message); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x (%v), want %x", c.name, got, err, want)
		}
		back := c.message.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(want, back); err != nil || !proto.Equal(back, c.message) {
			t.Errorf("%s: read as %v (%v)", c.name, back, err)
		}
	}
}

// A number without a name must reach the reader, which refuses it. As an enum it would be lost, and
// the field would read as its default.
func TestUnknownEnumNumbersArePreserved(t *testing.T) {
	var f CFileFooterPB
	must.Do(t, proto.Unmarshal(must.Hex(t, "08 4d 10 4e 18 00 30 4f"), &f))
	if f.GetDataType() != 77 || f.GetEncoding() != 78 || f.GetCompression() != 79 {
		t.Errorf("read as %v", &f)
	}
}

func TestMissingRequiredFieldsAreAnError(t *testing.T) {
	for _, wire := range []string{"", "08 05 10 06", "10 06 18 03", "08 05 18 03"} {
		if err := proto.Unmarshal(must.Hex(t, wire), new(CFileFooterPB)); err == nil {
			t.Errorf("a footer of %q was accepted", wire)
		}
	}
}

func TestDefaultsAreKudus(t *testing.T) {
	if c := new(CFileFooterPB).GetCompression(); c != int32(CompressionType_NO_COMPRESSION) {
		t.Errorf("a footer without compression says %d", c)
	}
	if s := new(TabletSuperBlockPB).GetTabletDataState(); s != int32(TabletDataState_TABLET_DATA_UNKNOWN) {
		t.Errorf("a superblock without state says %d", s)
	}
}

// Fields that a message does not declare are written back.
func TestUndeclaredFieldsArePreserved(t *testing.T) {
	wire := must.Hex(t, "0a 08 0a 02 08 00 10 02 38 05 12 00 32 01 61") // fields 7 and 6
	var p PartitionSchemaPB
	must.Do(t, proto.Unmarshal(wire, &p))
	if got, err := proto.Marshal(&p); err != nil || !bytes.Equal(got, wire) {
		t.Errorf("%x came back as %x (%v)", wire, got, err)
	}
}

func TestStoreRowsRoundTrip(t *testing.T) {
	for _, m := range []proto.Message{
		&TableRow{
			Schema: &SchemaPB{Columns: []*ColumnSchemaPB{{Name: proto.String("k"), Type: proto.Int32(7)}}},
			Name:   "t", TableId: []byte("id"), TabletId: []byte("tablet"), SchemaVersion: 2, NextColumnId: 3,
			HistoryMaxAgeSec: -1, HistoryFloor: 1 << 60, FlushedLsn: 9, NextRowsetId: 4, Number: 1, Comment: "c",
		},
		&RowSetRow{
			Data:        &RowSetDataPB{Id: proto.Uint64(1), LastDurableDmsId: proto.Int64(-1)},
			IncludedLsn: 5, BaseRows: 6, MaxTimestamp: 7, Bytes: 8,
		},
		&StoreRow{DefaultHistorySec: -1, ClockHigh: 1 << 61, NextTable: 2, LogEnd: 12},
	} {
		wire := must.Get(proto.Marshal(m))(t)
		back := m.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(wire, back); err != nil || !proto.Equal(back, m) {
			t.Errorf("%v came back as %v (%v)", m, back, err)
		}
	}
}

// The committed code equals the generator's output for the definitions.
func TestGeneratedCodeIsCurrent(t *testing.T) {
	for _, tool := range []string{"protoc", "protoc-gen-go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on PATH", tool)
		}
	}
	out := t.TempDir()
	args := []string{"--proto_path=.", "--go_out=" + out, "--go_opt=module=github.com/oribi-db/oribi/internal/kudupb"}
	for _, pattern := range []string{"oribi/kudu/*.proto", "oribi/store/*.proto"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			args = append(args, filepath.ToSlash(f))
		}
	}
	if text, err := exec.Command("protoc", args...).CombinedOutput(); err != nil {
		t.Fatalf("protoc: %v\n%s", err, text)
	}
	fresh := must.Get(filepath.Glob(filepath.Join(out, "*.pb.go")))(t)
	committed, err := filepath.Glob("*.pb.go")
	if err != nil || len(committed) != len(fresh) {
		t.Fatalf("%d generated files, want %d (%v)", len(committed), len(fresh), err)
	}
	// The generators write their versions at the top; those may differ.
	versions := regexp.MustCompile(`(?m)^// \tprotoc.*\n`)
	for _, f := range fresh {
		want := must.Get(os.ReadFile(f))(t)
		got, err := os.ReadFile(filepath.Base(f))
		if err != nil || !bytes.Equal(versions.ReplaceAll(got, nil), versions.ReplaceAll(want, nil)) {
			t.Errorf("%s differs from the output of generate.sh (%v)", filepath.Base(f), err)
		}
	}
}
