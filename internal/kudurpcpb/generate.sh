#!/bin/sh
# Writes the Go code of the messages again. Needs protoc 3.21 and, from go.mod's version of
# google.golang.org/protobuf, protoc-gen-go on PATH.
set -eu
cd "$(dirname "$0")"
rm -f ./*.pb.go
protoc --proto_path=. --proto_path=../kudupb \
	--go_out=. --go_opt=module=github.com/oribi-db/oribi/internal/kudurpcpb \
	oribi/kudurpc/rpc.proto oribi/kudurpc/master.proto oribi/kudurpc/tserver.proto
