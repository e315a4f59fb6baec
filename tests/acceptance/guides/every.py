"""All how-to guides, in the order of the navigation.

Those that take nothing for granted, and answer nothing in particular, are here whole.
"""

from tests.acceptance.guides.coming_over import APSCHEDULER, CELERY_BEAT, CRON
from tests.acceptance.guides.guide import Guide
from tests.acceptance.guides.operating import DEPLOYMENT, OPERATIONS
from tests.acceptance.guides.privacy import PRIVACY
from tests.acceptance.guides.privileges import LEAST_PRIVILEGE
from tests.acceptance.guides.the_log import ASKING_THE_LOG
from tests.acceptance.guides.time import TIME
from tests.acceptance.guides.watching import ALERTS, OBSERVABILITY
from tests.acceptance.guides.web import HTTP_API, WEB

GUIDES = (
    TIME,
    ASKING_THE_LOG,
    WEB,
    HTTP_API,
    ALERTS,
    Guide("transactions"),
    OBSERVABILITY,
    DEPLOYMENT,
    LEAST_PRIVILEGE,
    OPERATIONS,
    Guide("upgrading"),
    PRIVACY,
    Guide("integrations/django"),
    CRON,
    CELERY_BEAT,
    APSCHEDULER,
)
