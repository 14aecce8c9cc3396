package kudurpc

import (
	"bytes"
	"io"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
)

// A negative ID has ten bytes; the description of frames has the lengths.
func TestBytesOfFrames(t *testing.T) {
	got := must.Get(AppendFrame([]byte("x"), &pb.RequestHeader{CallId: proto.Int32(-3)}, nil, 100))(t)
	must.Equal(t, got, append([]byte("x"), must.Hex(t, "0000000d 0b 18fdffffffffffffffff01 00")...))
	got = must.Get(AppendFrame(nil, &pb.RequestHeader{CallId: proto.Int32(5), TimeoutMillis: proto.Uint32(1000),
		RemoteMethod: &pb.RemoteMethodPB{ServiceName: proto.String("s"), MethodName: proto.String("m")}},
		&pb.ScannerKeepAliveRequestPB{ScannerId: []byte("ab")}, 100))(t)
	must.Equal(t, got, must.Hex(t, "00000013 0d 1805 3206 0a0173 12016d 50e807 04 0a026162"))
}

func TestFramesThatDoNotFit(t *testing.T) {
	for name, test := range map[string]struct {
		frame string
		kind  error
	}{
		"empty":                        {"", io.EOF},
		"cut length":                   {"000000", io.ErrUnexpectedEOF},
		"cut header":                   {"00000004 02 08", io.ErrUnexpectedEOF},
		"no parts":                     {"00000000", fault.ErrCorrupt},
		"no body":                      {"00000003 02 0801", fault.ErrCorrupt},
		"header beyond the frame":      {"00000004 04 0801 00", fault.ErrCorrupt},
		"body beyond the frame":        {"00000004 02 0801 01 aa", fault.ErrCorrupt},
		"bytes after the body":         {"00000005 02 0801 00 aa", fault.ErrCorrupt},
		"above the limit":              {"00000065 02 0801 61", fault.ErrCorrupt},
		"header without an ID":         {"00000002 00 00", fault.ErrCorrupt},
		"length of a part too long":    {"00000008 808080808080 0000", fault.ErrCorrupt},
		"frame ends in part's length":  {"00000002 8080 00", fault.ErrCorrupt},
		"garbage instead of a header":  {"00000004 02 ffff 00", fault.ErrCorrupt},
		"length of a part of 2^35 - 1": {"00000006 ffffffff7f 00", fault.ErrCorrupt},
	} {
		_, err := NewFrameReader(bytes.NewReader(must.Hex(t, test.frame)), 100).Next(&pb.ResponseHeader{})
		must.Fail(t, err, test.kind, name)
	}
	_, err := NewFrameReader(bytes.NewReader(must.Hex(t, "00000004 02 0801 00")), 100).Next(&pb.ResponseHeader{})
	must.Do(t, err)
}

func TestHeadersHaveALimit(t *testing.T) {
	for _, test := range []struct {
		size int
		kind error
	}{{maxHeader - 10, nil}, {maxHeader, fault.ErrCorrupt}} {
		header := &pb.ResponseHeader{CallId: proto.Int32(1)}
		header.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 9, protowire.BytesType),
			make([]byte, test.size)))
		data := must.Get(AppendFrame(nil, header, nil, 1<<20))(t)
		_, err := NewFrameReader(bytes.NewReader(data), 1<<20).Next(&pb.ResponseHeader{})
		must.Fail(t, err, test.kind, test.size)
	}
}

func TestSidecarsThatDoNotFit(t *testing.T) {
	body := []byte("message")
	for _, offsets := range [][]uint32{{8}, {3, 2}, {3, 8}, {0, 4, 3}, {1 << 31}, make([]uint32, maxSidecars+1)} {
		must.Fail(t, must.Err2(split(nil, body, offsets)), fault.ErrCorrupt, len(offsets))
	}
	message, sidecars := must.Get2(split(nil, body, []uint32{3, 3, 5, 7}))(t)
	must.Equal(t, string(message), "mes")
	must.Equal(t, sidecars, [][]byte{{}, []byte("sa"), []byte("ge"), {}})
}

// The server's time is a little shorter than the client's, and never 0, which would be no limit.
func TestTimesOfServers(t *testing.T) {
	for _, test := range []struct{ millis, want int }{
		{-5, 1}, {0, 1}, {1, 1}, {8, 7}, {1000, 875}, {2000, 1750}, {60_000, 59_750}, {1 << 40, 1<<32 - 1},
	} {
		must.Equal(t, serverTimeout(millis(test.millis)), uint32(test.want), test.millis)
	}
}
