package kuduwal

import (
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudupb"
)

// FirstSegment is the name of the first segment of a log.
const FirstSegment = "wal-000000001" // file format: never change

// NewSegment returns the first segment of the log of a new tablet, without operations.
func NewSegment(tablet string, s *kudupb.SchemaPB, schemaVersion uint32) []byte {
	header := kudupb.EncodeRow(&kudupb.LogSegmentHeaderPB{TabletId: []byte(tablet), SequenceNumber: proto.Uint64(1),
		Schema: kudupb.EncodeRow(s), SchemaVersion: proto.Uint32(schemaVersion)})
	b := append([]byte{}, headMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	return append(b, header...)
}
