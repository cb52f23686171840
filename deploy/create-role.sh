#!/bin/sh
# Runs once, in a new database of docker-compose.yml: the portal's role owns the database and is no
# superuser. It may create the trusted extensions that migrations need.
set -eu
psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
    --set=password="$(cat /run/secrets/db_password)" <<SQL
CREATE ROLE ioportal LOGIN ${ROLE_OPTIONS:-} PASSWORD :'password';
ALTER DATABASE ioportal OWNER TO ioportal;
SQL
