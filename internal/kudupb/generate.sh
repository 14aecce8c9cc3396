#!/bin/sh
# Writes the Go code of the messages again. Needs protoc 3.21 and, from go.mod's version of
# google.golang.org/protobuf, protoc-gen-go on PATH.
set -eu
cd "$(dirname "$0")"
rm -f ./*.pb.go
protoc --proto_path=. \
	--go_out=. --go_opt=module=github.com/oribi-db/oribi/internal/kudupb \
	oribi/kudu/common.proto oribi/kudu/cfile.proto oribi/kudu/fs.proto oribi/kudu/tablet.proto \
	oribi/kudu/quorum.proto oribi/kudu/consensus.proto oribi/kudu/log.proto \
	oribi/store/meta.proto
