#!/usr/bin/env bash
# Apache Kudu refuses a write that sets an immutable column to the value that it has.
#
# Versions: kudu-binary and kudu-client 1.18.1 of Maven Central, a master and a tablet server on the
# loopback interface.
#
# The row (k = 1, fixed = 10, free = 20) exists, and fixed is immutable. An update or upsert that names
# fixed is an error although nothing would change in it, and its value for free is dropped too: so a
# row that was read cannot be written back by an upsert of all its columns. The forms that ignore
# errors set free, and say nothing about a fixed that differs.
#
# Output seen, the statuses of a write and the row after it:
#
#	update fixed = 10, free = 21: IMMUTABLE; 10, 20
#	upsert fixed = 10, free = 22: IMMUTABLE; 10, 20
#	update ignore fixed = 10, free = 23: OK; 10, 23
#	upsert ignore fixed = 11, free = 24: OK; 10, 24
#	update free = 25: OK; 10, 25
#
# Needs Linux on x86-64, a JDK, Maven, and Python 3. Exits with 1 if Kudu behaves otherwise.
set -euo pipefail
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
version=1.18.1
cat > "$dir/pom.xml" <<XML
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>immutable</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kudu</groupId><artifactId>kudu-client</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
XML
(cd "$dir" && mvn -q -B dependency:copy -Dartifact="org.apache.kudu:kudu-binary:$version:jar:linux-x86_64" -DoutputDirectory="$dir" &&
	mvn -q -B dependency:copy-dependencies -DoutputDirectory="$dir/lib") >&2
python3 -m zipfile -e "$dir/kudu-binary-$version-linux-x86_64.jar" "$dir"
home=$dir/kudu-binary-$version-linux-x86_64
chmod +x "$home"/bin/*

master=127.0.0.1:$((20000 + RANDOM % 10000)) server=127.0.0.1:$((30000 + RANDOM % 10000))
start() { # role, then flags
	LD_LIBRARY_PATH=$home/lib SASL_PATH=$home/lib/sasl2 "$home/bin/kudu" "$1" run --unlock_unsafe_flags --unlock_experimental_flags \
		--time_source=system_unsync --rpc_authentication=disabled --rpc_encryption=disabled --webserver_enabled=false \
		--fs_wal_dir="$dir/$1" --log_dir="$dir" "${@:2}" > "$dir/$1.log" 2>&1 &
	pids+=($!)
}
start master --rpc_bind_addresses="$master" --default_num_replicas=1
start tserver --rpc_bind_addresses="$server" --tserver_master_addrs="$master"

cat > "$dir/Finding.java" <<'JAVA'
import java.util.*;
import org.apache.kudu.*;
import org.apache.kudu.client.*;

public final class Finding {
  static KuduClient client;
  static KuduTable table;

  public static void main(String[] args) throws Exception {
    client = new KuduClient.KuduClientBuilder(args[0]).build();
    List<ColumnSchema> columns = new ArrayList<>();
    columns.add(new ColumnSchema.ColumnSchemaBuilder("k", Type.INT32).key(true).build());
    columns.add(new ColumnSchema.ColumnSchemaBuilder("fixed", Type.INT32).immutable(true).build());
    columns.add(new ColumnSchema.ColumnSchemaBuilder("free", Type.INT32).build());
    for (int attempt = 0; client.listTabletServers().getTabletServersCount() == 0; attempt++) {
      if (attempt == 60) throw new IllegalStateException("no tablet server");
      Thread.sleep(1000);
    }
    CreateTableOptions options = new CreateTableOptions().setRangePartitionColumns(Collections.emptyList()).setNumReplicas(1);
    table = client.createTable("t", new Schema(columns), options);
    write(table.newInsert(), 10, 20);
    show("update fixed = 10, free = 21", write(table.newUpdate(), 10, 21));
    show("upsert fixed = 10, free = 22", write(table.newUpsert(), 10, 22));
    show("update ignore fixed = 10, free = 23", write(table.newUpdateIgnore(), 10, 23));
    show("upsert ignore fixed = 11, free = 24", write(table.newUpsertIgnore(), 11, 24));
    show("update free = 25", write(table.newUpdate(), null, 25));
    client.shutdown();
  }

  /** Carries out an operation on the row and returns its status. */
  static String write(Operation operation, Integer fixed, int free) throws Exception {
    KuduSession session = client.newSession();
    operation.getRow().addInt("k", 1);
    if (fixed != null) operation.getRow().addInt("fixed", fixed);
    operation.getRow().addInt("free", free);
    OperationResponse response = session.apply(operation);
    session.close();
    if (!response.hasRowError()) return "OK";
    Status status = response.getRowError().getErrorStatus();
    return status.isImmutable() ? "IMMUTABLE" : status.toString();
  }

  static void show(String text, String status) throws Exception {
    for (RowResult row : client.newScannerBuilder(table).build()) {
      System.out.println(text + ": " + status + "; " + row.getInt("fixed") + ", " + row.getInt("free"));
    }
  }
}
JAVA
javac -cp "$dir/lib/*" -d "$dir" "$dir/Finding.java"
java -cp "$dir/lib/*:$dir" Finding "$master" | tee "$dir/output"
diff "$dir/output" - <<'OUT'
update fixed = 10, free = 21: IMMUTABLE; 10, 20
upsert fixed = 10, free = 22: IMMUTABLE; 10, 20
update ignore fixed = 10, free = 23: OK; 10, 23
upsert ignore fixed = 11, free = 24: OK; 10, 24
update free = 25: OK; 10, 25
OUT
